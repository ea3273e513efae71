package cli

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/format/schema"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// utr schema --write writes what utr schema prints, for each version.
func TestSchemasAreWritten(t *testing.T) {
	b := newBench(t)
	testkit.Equal(t, "the exit code", b.utr("schema --write site/schema"), ExitOK)
	for _, version := range schema.Versions() {
		testkit.Equal(t, "the exit code", b.utr("schema "+version), ExitOK)
		testkit.Equal(t, version, testkit.Read(t, "site/schema/"+version+".json"), b.out.String())
	}
}

// published is where nightly.yml publishes the schemas.
const published = "https://unified-test-runner.github.io/utr/schema/"

// The entry for the schema store in docs/suite/editors.md has the published versions, and its patterns match suites of
// mongodb/specifications, and nothing else there.
func TestSchemaStoreEntry(t *testing.T) {
	page := testkit.Read(t, "../../../docs/suite/editors.md")
	_, text, _ := strings.Cut(page, "### For the schema store")
	_, text, _ = strings.Cut(text, "```json\n")
	text, _, _ = strings.Cut(text, "```")
	var entry struct {
		Name, Description, URL string
		FileMatch              []string
		Versions               map[string]string
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	testkit.Check(t, d.Decode(&entry))
	want := map[string]string{}
	for _, version := range schema.Versions() {
		want[version] = published + version + ".json"
	}
	testkit.Same(t, "versions", entry.Versions, want)
	testkit.Equal(t, "url", entry.URL, want[schema.Newest])
	testkit.Contains(t, page, "`"+published+"VERSION.json`")
	testkit.Contains(t, testkit.Read(t, "../../../.github/workflows/nightly.yml"), "utr schema --write site/schema\n",
		"path: site\n")

	root := testkit.Official(t)
	for _, pattern := range entry.FileMatch {
		t.Run(pattern, func(t *testing.T) {
			matches := regexp.MustCompile("^" + strings.NewReplacer(`\*\*/`, "(?:.*/)?", `\*`,
				"[^/]*").Replace(regexp.QuoteMeta(pattern)) + "$")
			found := 0
			testkit.Check(t, fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() && matches.MatchString(name) {
					found++
					testkit.Contains(t, testkit.Read(t, filepath.Join(root, name)), "schemaVersion")
				}
				return err
			}))
			testkit.Equal(t, "it matches a file", found > 0, true)
		})
	}
}
