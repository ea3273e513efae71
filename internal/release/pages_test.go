//go:build unix

package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

var (
	blockOfPage = regexp.MustCompile("(?s)(?:<!-- file: (\\S+) -->\n)?```(\\w+)\n(.*?)```\n")
	commandLine = regexp.MustCompile(`(?m)^\$ (.*(?:\\\n.*)*)\n`)
	varies      = regexp.MustCompile(`127\\\.0\\\.0\\\.1:\d+|[\d.\\]+ ?m?s\b`)
	omitted     = regexp.MustCompile(`(^|\n)?…(\n|$)?`)
)

// The commands of the starting pages work in an empty folder with nothing but utr and, where a page needs them, Python
// with PyMongo and Node.js with its driver: each prints what the page shows, where … stands for anything. A page's
// blocks of shell code, which install something, are not executed. UTR_UPDATE=1 rewrites an output without ….
func TestStartingPages(t *testing.T) {
	for _, row := range []struct {
		page         string
		python, node bool   // whether it needs their drivers
		commands     int    // at least
		uri          string // the connection string for which the embedded deployment stands in
	}{
		{"start", false, false, 3, ""},
		{"your-driver", true, true, 5, ""},
		{"your-suite", false, false, 15, ""},
		{"your-server", false, false, 3, "mongodb://localhost:27017"},
		{"your-night", false, false, 5, ""},
		{"your-application", true, false, 3, ""},
	} {
		t.Run(row.page, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			path := filepath.Dir(m.utr) + ":/usr/local/bin:/usr/bin:/bin"
			env := []string{"HOME=" + t.TempDir(), "UTR_URI=", "UTR_PYTHON=", "UTR_NODE_PATH="}
			link := func(name, program string) {
				script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", program)
				testkit.Check(t, os.WriteFile(filepath.Join(filepath.Dir(m.utr), name), []byte(script), 0o755))
			}
			if row.python {
				link("python3", testkit.Python(t, "pymongo"))
			}
			if row.node {
				node, _ := testkit.Node(t)
				link("node", node)
				env = append(env, "NODE_PATH="+os.Getenv("UTR_NODE_PATH"))
			}
			file := filepath.Join(testkit.Root(t), "docs", row.page+".md")
			page := testkit.Read(t, file)
			place := utrtest.NewPlace(t)
			script, commands := "", []string(nil)
			for _, block := range blockOfPage.FindAllStringSubmatch(page, -1) {
				if block[1] != "" {
					testkit.Check(t, os.WriteFile(filepath.Join(m.dir, block[1]), []byte(block[3]), 0o644))
				}
				if block[2] != "console" {
					continue
				}
				for _, c := range commandLine.FindAllStringSubmatch(block[3], -1) {
					commands = append(commands, c[1])
				}
			}
			if len(commands) < row.commands {
				t.Fatalf("%s has only the commands %q", row.page, commands)
			}
			const mark = "==== next ===="
			for _, c := range commands {
				if row.uri != "" {
					c = strings.ReplaceAll(c, row.uri, place.Serve("--topology", "single").URI)
				}
				script += "echo '" + mark + "'\n" + c + "\n"
				if strings.HasSuffix(c, "&") {
					script += "started=$!; until [ -e uri ] || ! kill -0 $started; do sleep 0.05; done\n"
				}
			}
			shell := exec.Command("sh", "-c", "exec 2>&1\n"+script+"\n[ -z \"$started\" ] || { kill $started; wait; }")
			shell.Dir, shell.Env = m.dir, append(env, "PATH="+path)
			shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			t.Cleanup(func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }) // what a failed test leaves running
			outputs := strings.Split(place.Launch(shell).End().Out+"\n", mark+"\n")[1:]
			played := blockOfPage.ReplaceAllStringFunc(page, func(block string) string {
				if blockOfPage.FindStringSubmatch(block)[2] != "console" {
					return block
				}
				starts := commandLine.FindAllStringIndex(block, -1)
				out := block[:starts[0][0]]
				for i, at := range starts {
					end := len(block) - len("```\n")
					if i+1 < len(starts) {
						end = starts[i+1][0]
					}
					want, got := block[at[1]:end], outputs[0]
					outputs = outputs[1:]
					if out += block[at[0]:at[1]]; shows(want, got) {
						got = want
					}
					out += got
				}
				return out + "```\n"
			})
			testkit.Golden(t, file, played)
		})
	}
}

// shows reports whether a page shows an output, except for durations, ports and what … omits.
func shows(page, output string) bool {
	pattern := varies.ReplaceAllStringFunc(regexp.QuoteMeta(page), func(part string) string {
		if strings.HasPrefix(part, "127") {
			return `127\.0\.0\.1:\d+`
		}
		return `[\d.]+ ?[mµ]?s`
	})
	return regexp.MustCompile(`(?s)^` + omitted.ReplaceAllString(pattern, `.*`) + `\n*$`).MatchString(output)
}
