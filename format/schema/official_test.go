package schema

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func parse(t testing.TB, text string) *source.Value {
	t.Helper()
	v, err := source.ParseYAML("suite.yml", []byte(text))
	testkit.Check(t, err)
	return v
}

// compare compares the verdicts of the official schema, of the derived one and of the walk on a raw
// document at a version.
func compare(t *testing.T, o *oracle, minor int, raw any, name string) {
	t.Helper()
	root, valid := valueOf(raw), o.valid(t, minor, raw)
	derived := verdict(t, minor, root)
	if problems := explain(walk{declared: minor, granted: minor}, root); valid != derived ||
		valid != (len(problems) == 0) {
		text, _ := json.Marshal(raw)
		t.Errorf("%s at 1.%d: valid officially: %v, as derived: %v, by the walk: %v\n%.2000s", name, minor, valid, derived,
			problems, text)
	}
}

// A sample of official files, of rows and of mutants of both has the verdict of the official schemas.
// The soak checks all of them, at every version.
func TestOfficialVerdicts(t *testing.T) {
	o, seed, all := newOracle(t), testkit.Seed(t), os.Getenv("UTR_SOAK") == "1"
	file, row := testkit.Chance(t, 40), testkit.Chance(t, 20)
	docs := officialFiles(t, func(string) bool { return file() })
	for _, r := range append(explained(t), tableRows(t)...) {
		if row() {
			docs[r.reason] = plain(parse(t, r.file))
		}
	}
	words, names := wordsOf(o.Raw[newest]), slices.Sorted(maps.Keys(docs))
	var workers sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for worker := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(worker)))
		m := &mutator{Rand: rng, Words: words}
		workers.Go(func() {
			for i := worker; i < len(names); i += n {
				doc := docs[names[i]]
				for minor := range newest + 1 {
					if all || minor == newest || rng.IntN(newest) == 0 {
						compare(t, o, minor, doc, names[i])
					}
				}
				for range map[bool]int{false: 2, true: 20}[all] {
					mutant, place := m.mutate(doc)
					compare(t, o, newest, mutant, "mutant of "+names[i]+" at "+place)
					compare(t, o, rng.IntN(newest), mutant, "mutant of "+names[i]+" at "+place)
				}
			}
		})
	}
	workers.Wait()
}

// The walk has objections to an official file or a mutant if and only if the derived schema rejects it. An objection to
// an accepted file would be a defect of the walk that Validate hides.
func TestWalkAgrees(t *testing.T) {
	m := &mutator{Rand: rand.New(rand.NewPCG(testkit.Seed(t), 0))}
	for _, s := range entries(t) {
		for _, k := range s.parse() {
			m.Words = append(m.Words, k.name)
		}
	}
	agree := func(minor int, root *source.Value, name string) {
		if walked := explain(walk{declared: minor, granted: minor}, root); verdict(t, minor, root) != (len(walked) == 0) {
			t.Errorf("%s at 1.%d: the walk finds %v\n%.2000s", name, minor, walked, root.JSON())
		}
	}
	files := 0
	testkit.Check(t, filepath.WalkDir(testkit.Official(t), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yml" {
			return err
		}
		root, err := source.ParseYAML(name, []byte(testkit.Read(t, name)))
		if err != nil {
			return nil // some files are malformed on purpose
		}
		minor, err := minorOf(root.Get("schemaVersion").Text())
		if err != nil {
			minor = newest
		}
		agree(minor, root, name)
		mutant, place := m.mutate(plain(root))
		agree(minor, valueOf(mutant), "mutant of "+name+" at "+place)
		files++
		return nil
	}))
	testkit.Equal(t, "most files are read", files > 500, true)
}

// The derived schemas have the same constraints at each path as the official ones, at every version.
// This finds an annotation that is off by one, which files and mutants can miss; mutants find
// dependencies between paths.
func TestOfficialFacts(t *testing.T) {
	o := newOracle(t)
	for minor := range o.Raw {
		text, err := JSON(versionString(minor))
		testkit.Check(t, err)
		derived, err := readJSON(text)
		testkit.Check(t, err)
		want, got := factsOf(o.Raw[minor]), factsOf(objectIn(derived))
		testkit.Equal(t, "dialect of 1."+strconv.Itoa(minor), objectIn(derived)["$schema"], o.Raw[minor]["$schema"])
		if len(want) < 200 {
			t.Errorf("1.%d has only %d facts", minor, len(want))
		}
		testkit.Same(t, fmt.Sprintf("1.%d, derived", minor), got, want)
	}
}

// factsOf returns the constraints of a schema at each path, of all alternatives.
func factsOf(root map[string]any) map[string]bool {
	facts := map[string]bool{}
	walkSchema(root, func(path string, s map[string]any) {
		facts[path+": is known"] = true
		for _, keyword := range []string{"type", "const", "pattern", "minItems", "minProperties", "maxProperties"} {
			if value, ok := s[keyword]; ok {
				facts[fmt.Sprintf("%s: %s %v", path, keyword, value)] = true
			}
		}
		if s["deprecated"] == true && !strings.HasSuffix(path, "[]") { // an array may also mark its elements
			facts[path+": is deprecated"] = true
		}
		for _, value := range listIn(s["enum"]) {
			facts[fmt.Sprintf("%s: may be %v", path, value)] = true
		}
	})
	return facts
}

// objectIn and listIn return v, or nil if it has another type.
func objectIn(v any) map[string]any { m, _ := v.(map[string]any); return m }

func listIn(v any) []any { l, _ := v.([]any); return l }

// followRef follows a $ref in a schema.
func followRef(root, s map[string]any) map[string]any {
	for {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		s = root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			s = objectIn(s[step])
		}
	}
}

// walkSchema visits the schemas of each path, in every alternative: ".key" for each name of a pattern,
// ".*" for other keys, "[]" for elements. It follows a recursion once.
func walkSchema(root map[string]any, visit func(path string, s map[string]any)) {
	var walk func(s map[string]any, path string, refs []string)
	walk = func(s map[string]any, path string, refs []string) {
		if ref, ok := s["$ref"].(string); ok {
			if slices.Contains(refs, ref) {
				return
			}
			refs, s = append(slices.Clone(refs), ref), followRef(root, s)
		}
		visit(path, s)
		for _, keyword := range []string{"properties", "patternProperties"} {
			for pattern, p := range objectIn(s[keyword]) {
				for _, name := range namesFor(pattern) {
					walk(objectIn(p), path+"."+name, refs)
				}
			}
		}
		for keyword, suffix := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
			if below := objectIn(s[keyword]); below != nil {
				walk(below, path+suffix, refs)
			}
		}
		for _, branch := range slices.Concat(listIn(s["oneOf"]), listIn(s["anyOf"])) {
			walk(objectIn(branch), path, refs)
		}
	}
	walk(root, "", nil)
}

// The lowest version is the first at which the official schema accepts a file. The version before
// rejects the place that requires it.
func TestLowest(t *testing.T) {
	o, all := newOracle(t), os.Getenv("UTR_SOAK") == "1"
	file := testkit.Chance(t, 10)
	docs := officialFiles(t, func(string) bool { return all || file() })
	for name, doc := range docs {
		want := 0
		for want <= newest && !o.valid(t, want, doc) {
			want++
		}
		got, because, wrong, err := Lowest(valueOf(doc))
		testkit.Check(t, err)
		switch {
		case want > newest:
			testkit.Equal(t, name+" fits no version", wrong != nil, true)
		case want == 0:
			testkit.Equal(t, name, got, "1.0")
		default:
			testkit.Equal(t, name, got, versionString(want))
			earlier, err := Validate(versionString(want-1), valueOf(doc))
			testkit.Check(t, err)
			if !slices.ContainsFunc(earlier, func(p Problem) bool { return p.Path == because.Path }) {
				t.Errorf("%s: %v requires %s, but 1.%d accepts it", name, because, got, want-1)
			}
		}
	}
}
