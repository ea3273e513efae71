package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

var (
	blockOfPage = regexp.MustCompile("(?s)(<!-- file: (\\S+) -->\n)?```(console|yaml)\n(.*?)```\n")
	anyDelay    = regexp.MustCompile(`[\d.]+ ms`)
	anyPort     = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	eventList   = regexp.MustCompile(`(?s)\n\n  events of client\n.*?\n\n`)
)

// The page for authors is true: its commands are executed, one after the other, and
// print what stands there.
func TestWritingSuites(t *testing.T) {
	page := filepath.Join(testkit.Root(t), "docs", "writing-suites.md")
	text, err := os.ReadFile(page)
	testkit.Check(t, err)
	b := realBench(t)
	played := blockOfPage.ReplaceAllStringFunc(string(text), func(block string) string {
		m := blockOfPage.FindStringSubmatch(block)
		if m[3] == "yaml" {
			write(t, m[2], m[4])
			return block
		}
		out := "```console\n"
		for line := range strings.Lines(m[4]) {
			command, is := strings.CutPrefix(line, "$ utr ")
			if !is {
				continue
			}
			out += line
			command, to, redirected := strings.Cut(strings.TrimSpace(command), " > ")
			b.utr(command)
			if redirected {
				write(t, to, b.out.String())
				continue
			}
			said := anyPort.ReplaceAllString(b.out.String()+b.err.String(), "127.0.0.1:27017")
			said = anyDelay.ReplaceAllString(said, "64.9 ms")
			out += eventList.ReplaceAllString(said, "\n\n  events of client\n    …\n\n")
		}
		return out + "```\n"
	})
	testkit.Golden(t, page, played)
}
