package architecture

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// configurations returns the files for CI systems and Kubernetes, and the YAML blocks of docs/ci.md, by name.
func configurations(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{".github/workflows/*.yml", "docs/examples/*.yml"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		testkit.Check(t, err)
		for _, f := range files {
			all[filepath.Base(f)+" in "+filepath.Base(filepath.Dir(f))] = testkit.Read(t, f)
		}
	}
	all["the workflow of utr engine init"] = regexp.MustCompile(`\{\{.*?\}\}`).ReplaceAllString(read(t,
		"program/internal/scaffold/files/workflow.yml"), "x")
	for i, m := range yamlBlock.FindAllStringSubmatch(read(t, "docs/ci.md"), -1) {
		all[fmt.Sprintf("block %d of docs/ci.md", i+1)] = m[1]
	}
	return all
}

var yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n")

// parsed returns the value of a file with YAML.
func parsed(t *testing.T, name, text string) (value any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(name, err)
	}
	return value
}

// objects calls visit for each document in a value.
func objects(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(v)
		for _, inner := range v {
			objects(inner, visit)
		}
	case []any:
		for _, inner := range v {
			objects(inner, visit)
		}
	}
}

// Workflows pass inputs that the action and the reusable workflow declare. actionlint does not know the inputs of other
// repositories.
func TestInputsOfOurActions(t *testing.T) {
	var action, workflow struct {
		Inputs map[string]any
		On     struct {
			Call struct{ Inputs map[string]any } `yaml:"workflow_call"`
		}
	}
	testkit.Check(t, yaml.Unmarshal([]byte(read(t, "action.yml")), &action))
	testkit.Check(t, yaml.Unmarshal([]byte(read(t, ".github/workflows/driver.yml")), &workflow))
	inputs := map[string]map[string]any{"unified-test-runner/utr": action.Inputs,
		"unified-test-runner/utr/.github/workflows/driver.yml": workflow.On.Call.Inputs, "./.utr-action": action.Inputs}
	seen := 0
	for name, text := range configurations(t) {
		objects(parsed(t, name, text), func(o map[string]any) {
			uses, _ := o["uses"].(string)
			uses, _, _ = strings.Cut(uses, "@")
			with, _ := o["with"].(map[string]any)
			for input := range with {
				if declared := inputs[uses]; declared != nil {
					seen++
					testkit.Equal(t, name+": "+uses+" has the input "+input, declared[input] != nil, true)
				}
			}
		})
	}
	testkit.Equal(t, "20 inputs or more", seen >= 20, true)
}

// call matches a command line of utr up to the end of the command.
var call = regexp.MustCompile(`\butr (run|matrix|merge|diff|clean|fmt|convert|check|validate|schema-version) ([^|&;\n]*)`)

// Command lines in workflows and examples have flags that the command has.
func TestFlagsOfExamples(t *testing.T) {
	commands, seen := read(t, "docs/commands.md"), 0
	all := configurations(t)
	all["the action"] = read(t, ".ci/action")
	for name, text := range all {
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			_, section, _ := strings.Cut(commands, "\n## utr "+m[1]+"\n")
			section, _, _ = strings.Cut(section, "\n## ")
			for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(m[2], -1) {
				seen++
				testkit.Equal(t, name+": utr "+m[1]+" has "+flag,
					regexp.MustCompile(`(?m)^ +(-\w, )?`+flag+`\b`).MatchString(section), true)
			}
		}
	}
	testkit.Equal(t, "30 flags or more", seen >= 30, true)
}

// The Evergreen project uses the functions and tasks that it defines, and only those commands of Evergreen that its
// documentation lists.
func TestEvergreenExample(t *testing.T) {
	project := parsed(t, "evergreen.yml", read(t, "docs/examples/evergreen.yml")).(map[string]any)
	used, commands := map[string]bool{}, map[string]bool{}
	objects(project, func(o map[string]any) {
		if name, is := o["func"].(string); is {
			used[name] = true
		}
		if name, is := o["command"].(string); is {
			commands[name] = true
		}
	})
	testkit.Same(t, "functions", slices.Sorted(maps.Keys(used)),
		slices.Sorted(maps.Keys(project["functions"].(map[string]any))))
	testkit.Equal(t, "commands", slices.Sorted(maps.Keys(commands)),
		[]string{"attach.xunit_results", "expansions.update", "git.get_project", "shell.exec", "subprocess.exec"})
	names := func(of any) map[string]bool {
		all := map[string]bool{}
		for _, o := range of.([]any) {
			all[o.(map[string]any)["name"].(string)] = true
		}
		return all
	}
	tasks := map[string]bool{}
	for _, v := range project["buildvariants"].([]any) {
		maps.Copy(tasks, names(v.(map[string]any)["tasks"]))
	}
	testkit.Same(t, "tasks", tasks, names(project["tasks"]))
}
