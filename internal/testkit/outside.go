package testkit

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Official returns the path of a file or folder of the official suites, such as Official(t, "crud", "tests"), or
// skips the test if it does not exist. The suites are in UTR_SPECIFICATIONS, which names the folder "source" of a
// checkout of mongodb/specifications, or in ../shared beside this checkout.
func Official(t testing.TB, elements ...string) string {
	t.Helper()
	path, found := FindOfficial(t, elements...)
	if !found {
		t.Skip("not verified: the official suites are missing")
	}
	return path
}

// FindOfficial is Official for tests that do not require the suites.
func FindOfficial(t testing.TB, elements ...string) (path string, found bool) {
	t.Helper()
	root := os.Getenv("UTR_SPECIFICATIONS")
	if root == "" {
		root = filepath.Join(Root(t), "..", "shared", "specifications")
	}
	path = filepath.Join(append([]string{root}, elements...)...)
	_, err := os.Stat(path)
	return path, err == nil
}

// OfficialSchema returns the path of the official schema of a version such as "1.28", or skips the test.
func OfficialSchema(t testing.TB, version string) string {
	t.Helper()
	name := "schema-" + version + ".json"
	if path, found := FindOfficial(t, "unified-test-format", name); found {
		return path
	}
	return Official(t, "unified-test-format", "schema", name)
}

// Recordings returns the folder with recorded replies of real servers,
// ../shared/recordings beside this checkout, or skips the test.
func Recordings(t testing.TB) string {
	t.Helper()
	path := filepath.Join(Root(t), "..", "shared", "recordings")
	if _, err := os.Stat(path); err != nil {
		t.Skip("not verified: the recordings of real servers are missing")
	}
	return path
}

// EnvReleases names folders with binaries of real servers, separated like $PATH.
const EnvReleases = "UTR_LOCAL_RELEASES"

// Releases returns the folders of EnvReleases.
func Releases() []string { return filepath.SplitList(os.Getenv(EnvReleases)) }

// Root returns the root of this checkout.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the tests were built elsewhere: %v", err)
	}
	return root
}

// Lacking ends a test that needs a program that is not installed. On a developer's machine, the test is skipped. In CI,
// it fails, because CI installs all programs.
func Lacking(t testing.TB, what string, why ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(append([]any{"CI lacks", what}, why...)...)
	}
	t.Skip(append([]any{"not verified: no", what}, why...)...)
}

// Python returns a Python interpreter that can import modules: UTR_PYTHON, or python3.
func Python(t testing.TB, modules ...string) string {
	t.Helper()
	return program(t, "Python with "+strings.Join(modules, " and "), "UTR_PYTHON", []string{"python3"}, nil, "-c",
		"import "+strings.Join(modules, ", "))
}

// Wheels returns a folder from which pip installs an older release of PyMongo: UTR_WHEELS. The script .ci/run fills it.
func Wheels(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("UTR_WHEELS")
	if _, err := os.Stat(folder); err != nil {
		Lacking(t, "folder UTR_WHEELS with a release of PyMongo", err)
	}
	return folder
}

// Node returns a Node.js and an environment in which it can load the driver, from UTR_NODE_PATH.
func Node(t testing.TB) (node string, env []string) {
	t.Helper()
	env = os.Environ()
	if path := os.Getenv("UTR_NODE_PATH"); path != "" {
		env = append(env, "NODE_PATH="+path)
	}
	return program(t, "Node.js with its MongoDB driver", "", []string{"node"}, env, "-e", "require('mongodb')"), env
}

// Java returns the command that starts the adapter for the Java driver. The jar is
// UTR_JAVA_ADAPTER, or the one that mvn package builds.
func Java(t testing.TB) []string {
	t.Helper()
	jar := os.Getenv("UTR_JAVA_ADAPTER")
	if jar == "" {
		jar = filepath.Join(Root(t), "adapters", "java", "target", "adapter.jar")
	}
	return java(t, "Java adapter", jar, "-jar", jar)
}

// java returns a command in Java that needs a file.
func java(t testing.TB, what, file string, args ...string) []string {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		Lacking(t, what, err)
	}
	java := program(t, "Java", "", []string{"java"}, nil, "-version")
	return append([]string{java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}, args...)
}

// Rust returns the adapter for the Rust driver: UTR_RUST_ADAPTER, or the program that cargo install builds. Without it,
// it skips the test, also in CI: distributions have no Rust that is new enough for the driver.
func Rust(t testing.TB) string {
	t.Helper()
	program := cmp.Or(os.Getenv("UTR_RUST_ADAPTER"), filepath.Join(Root(t), "adapters", "rust", "bin", "adapter"))
	if _, err := os.Stat(program); err != nil {
		t.Skip("not verified: the Rust adapter is missing: ", err)
	}
	return program
}

// Ruby returns a Ruby interpreter with the MongoDB driver.
func Ruby(t testing.TB) string {
	t.Helper()
	return program(t, "Ruby with its MongoDB driver", "UTR_RUBY", []string{"ruby"}, nil, "-e", "require 'mongo'")
}

// Browser returns a Chromium.
func Browser(t testing.TB) string {
	t.Helper()
	return program(t, "Chromium", "UTR_BROWSER", []string{"chromium", "chromium-browser", "google-chrome"}, nil,
		"--version")
}

// MongoOrchestration returns the program mongo-orchestration.
func MongoOrchestration(t testing.TB) string {
	t.Helper()
	return program(t, "mongo-orchestration", "UTR_MONGO_ORCHESTRATION", []string{"mongo-orchestration"}, nil, "--version")
}

// FerretDB returns a server of another vendor. The script .ci/run builds it.
func FerretDB(t testing.TB) string {
	t.Helper()
	return program(t, "FerretDB", "UTR_FERRETDB", []string{"ferretdb"}, nil, "--version")
}

// MongoJavaServer returns the command that starts a server of another vendor. The script .ci/run builds it in the
// folder UTR_MONGO_JAVA_SERVER.
func MongoJavaServer(t testing.TB) []string {
	t.Helper()
	folder := os.Getenv("UTR_MONGO_JAVA_SERVER")
	return java(t, "mongo-java-server", filepath.Join(folder, "Serve.class"), "-cp",
		folder+":"+filepath.Join(folder, "*"), "Serve")
}

// PreCommit returns the program pre-commit.
func PreCommit(t testing.TB) string {
	t.Helper()
	return program(t, "pre-commit", "", []string{"pre-commit"}, nil, "--version")
}

// program returns the program that a variable names, or the first of names that is
// installed, provided that it runs with the arguments probe without an error.
func program(t testing.TB, what, variable string, names, env []string, probe ...string) string {
	t.Helper()
	if named := os.Getenv(variable); variable != "" && named != "" {
		names = []string{named}
	}
	var why error
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			cmd := exec.CommandContext(Context(t), path, probe...)
			cmd.Env = env
			err = cmd.Run()
		}
		if err == nil {
			return path
		}
		why = err
	}
	Lacking(t, what, why)
	return ""
}
