// Package schema_test holds specs/schema against the official schemas: every
// official file at every version, and tens of thousands of mutants. It takes
// minutes; the tests of the package have a share of it.
package schema_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/unified-test-runner/utr/internal/oracle"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/schema"
)

const newest = 28

func version(minor int) string { return fmt.Sprintf("1.%d", minor) }

// A judge compares our verdicts with the official ones.
type judge struct {
	official *oracle.Oracle
	set      *schema.Set
	derived  [newest + 1]*gojsonschema.Schema
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	j := &judge{official: oracle.New(t, newest), set: schema.New()}
	for minor := range j.derived {
		text, err := j.set.JSON(version(minor))
		testkit.Check(t, err)
		if j.derived[minor], err = gojsonschema.NewSchema(gojsonschema.NewBytesLoader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// same compares the verdicts on a document, and expects that a refusal is
// explained in our own words, not in those of gojsonschema.
func (j *judge) same(t *testing.T, minor int, raw any, root *source.Value, name string) (valid bool) {
	t.Helper()
	valid = j.official.Valid(t, minor, raw)
	problems := j.set.Validate(version(minor), root)
	text := func() string { data, _ := json.Marshal(raw); return fmt.Sprintf("%.2000s", data) }
	if valid != (len(problems) == 0) {
		t.Errorf("%s at 1.%d: officially valid: %v, but we find %v\n%s", name, minor, valid, problems, text())
	}
	if !valid && len(problems) > 0 {
		result, err := j.derived[minor].Validate(gojsonschema.NewRawLoader(raw))
		if err != nil {
			t.Error(err)
		} else if e := result.Errors(); len(e) == len(problems) && e[0].Description() == problems[0].Message {
			t.Errorf("%s at 1.%d: nothing explains %v\n%s", name, minor, problems, text())
		}
	}
	return valid
}

// each calls a function with every name, on all processors.
func each(t *testing.T, names []string, f func(name string)) {
	work := make(chan string)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for name := range work {
				if !t.Failed() {
					f(name)
				}
			}
		})
	}
	for _, name := range names {
		work <- name
	}
	close(work)
	workers.Wait()
}

// Every official file gets the official verdict at every version; a file that
// is valid at a version is valid at all later ones, on which LowestFor relies;
// LowestFor finds the first of them, or a later one for what no schema shows;
// and no suite that may run has anything wrong inside of its arguments.
func TestOfficialFiles(t *testing.T) {
	j := newJudge(t)
	files, read, malformed := oracle.Files(t, func(string) bool { return true })
	var mu sync.Mutex
	verdicts := map[bool]int{}
	each(t, slices.Sorted(maps.Keys(files)), func(name string) {
		raw, root, first := files[name], oracle.Value(files[name]), -1
		for minor := range newest + 1 {
			valid := j.same(t, minor, raw, root, name)
			if first >= 0 && !valid {
				t.Errorf("%s is valid at 1.%d but not at 1.%d", name, first, minor)
			}
			if first < 0 && valid {
				first = minor
			}
			mu.Lock()
			verdicts[valid]++
			mu.Unlock()
		}
		lowest, demands, ok := j.set.LowestFor(root)
		if ok != (first >= 0) {
			t.Errorf("%s: a lowest version: %v, the first valid one is 1.%d", name, ok, first)
		} else if ok && lowest != version(first) && !unseen(demands, lowest) {
			t.Errorf("%s: the lowest version is %s, the first valid one is 1.%d: %v", name, lowest, first, demands)
		}
		if declared := root.Get("schemaVersion"); ok && declared.Kind == source.String && len(j.set.Validate(declared.String, root)) == 0 {
			for _, p := range j.set.Nested(root) {
				t.Errorf("%s: %v", name, p)
			}
		}
	})
	if read < 900 || malformed > 5 || verdicts[true] < 5000 || verdicts[false] < 2000 {
		t.Errorf("%d files read, %d malformed, %v: that is not all", read, malformed, verdicts)
	}
	t.Logf("%d files, %d of them different, verdicts %v", read, len(files), verdicts)
}

// unseen reports whether something that no schema shows demands a version.
func unseen(demands []schema.Demand, lowest string) bool {
	return slices.ContainsFunc(demands, func(d schema.Demand) bool {
		return d.Version == lowest && (strings.HasPrefix(d.What, "operat") || strings.HasPrefix(d.What, "$$") || strings.Contains(d.Path, ".arguments."))
	})
}

// Mutants of the official files and of generated documents get the official
// verdict. Together they change every key that the newest schema has.
func TestMutants(t *testing.T) {
	j, seed := newJudge(t), testkit.Seed(t)
	docs, _, _ := oracle.Files(t, func(string) bool { return true })
	for name, doc := range docs { // two tests are enough, and quicker
		if tests := oracle.List(oracle.Object(doc)["tests"]); len(tests) > 2 {
			docs[name] = maps.Clone(oracle.Object(doc))
			oracle.Object(docs[name])["tests"] = tests[:2]
		}
	}
	generate := func(kind string, minor, n int) {
		for i := range n {
			g := generator{root: j.official.Raw[minor], rng: rand.New(rand.NewPCG(seed+uint64(minor), uint64(i))), all: kind == "full"}
			name := fmt.Sprintf("%s %d of 1.%d", kind, i, minor)
			docs[name] = g.suite(version(minor))
			if !j.official.Valid(t, minor, docs[name]) {
				t.Errorf("%s is not valid: the generator is wrong", name)
			}
		}
	}
	for minor := range newest + 1 {
		generate("generated", minor, 6)
	}
	generate("full", newest, 20)
	words := oracle.WordsOf(j.official.Raw[newest])
	var mu sync.Mutex
	mutants, changed := 0, map[string]bool{}
	each(t, slices.Sorted(maps.Keys(docs)), func(name string) {
		hash := fnv.New64a()
		hash.Write([]byte(name))
		m := &oracle.Mutator{Rand: rand.New(rand.NewPCG(hash.Sum64(), seed)), Words: words}
		places := make([]string, 20) // anywhere
		if strings.HasPrefix(name, "full ") {
			places = oracle.PlacesOf(docs[name])
		}
		for _, at := range places {
			doc, place := m.Mutate(docs[name], at)
			root := oracle.Value(doc)
			minors := []int{newest, m.Rand.IntN(newest + 1), m.Rand.IntN(newest + 1)}
			var declared int
			if text, _ := oracle.Object(docs[name])["schemaVersion"].(string); schema.Check(text) == nil {
				if _, err := fmt.Sscanf(text, "1.%d", &declared); err == nil {
					minors = append(minors, declared)
				}
			}
			slices.Sort(minors)
			for _, minor := range slices.Compact(minors) {
				j.same(t, minor, doc, root, "mutant of "+name+" at "+place)
			}
			if _, ok := j.set.Lowest(root); ok != j.official.Valid(t, newest, doc) {
				t.Errorf("mutant of %s at %s: a lowest version: %v", name, place, ok)
			}
			mu.Lock()
			mutants++
			changed[place] = true
			mu.Unlock()
		}
	})
	for place := range placesOf(j.official.Raw[newest]) {
		if !changed[place] && !strings.HasSuffix(place, ".createOptions.writeConcern") { // in no valid document
			t.Errorf("no mutant changed %s", place)
		}
	}
	if mutants < 20_000 {
		t.Errorf("%d mutants are too few", mutants)
	}
	t.Logf("%d mutants of %d documents", mutants, len(docs))
}
