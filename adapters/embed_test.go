package adapters

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// The commands of the engines file, and CI, install the versions of drivers for which the adapters are tested.
func TestVersions(t *testing.T) {
	pymongo := strings.TrimSpace(testkit.Read(t, "pymongo/requirements.txt"))
	var node struct{ Dependencies struct{ MongoDB string } }
	testkit.Check(t, json.Unmarshal([]byte(testkit.Read(t, "node/package.json")), &node))
	testkit.Contains(t, testkit.Read(t, EnginesFile), `"`+pymongo+`"`, " mongodb@"+node.Dependencies.MongoDB+"'")
	_, version, _ := strings.Cut(pymongo, "==")
	_, rust, _ := strings.Cut(testkit.Read(t, "rust/Cargo.toml"), `mongodb = { version = "=`)
	rust, _, _ = strings.Cut(rust, `"`)
	testkit.Contains(t, testkit.Read(t, "rust/Cargo.lock"), "name = \"mongodb\"\nversion = \""+rust+"\"\n")
	testkit.Contains(t, testkit.Read(t, filepath.Join(testkit.Root(t), ".ci", "run")), "pymongo="+version+"\n",
		"node_driver="+node.Dependencies.MongoDB+"\n")
	testkit.Contains(t, testkit.Read(t, filepath.Join(testkit.Root(t), ".github", "workflows", "ci.yml")),
		"pymongo=="+version, "mongodb@"+node.Dependencies.MongoDB)
	_, java, _ := strings.Cut(testkit.Read(t, "java/pom.xml"), "<driver.version>")
	java, _, _ = strings.Cut(java, "<")
	_, golang, _ := strings.Cut(testkit.Read(t, filepath.Join(testkit.Root(t), "go.mod")),
		"go.mongodb.org/mongo-driver/v2 v")
	golang, _, _ = strings.Cut(golang, "\n")
	for _, newest := range []string{golang, version, node.Dependencies.MongoDB, java, rust} {
		testkit.Contains(t, testkit.Read(t, EnginesFile), "  versions: ["+newest+", ")
	}
}
