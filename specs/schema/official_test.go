package schema

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/unified-test-runner/utr/source"
)

// official is the official schema of every version, as read and as compiled.
type official struct {
	raw      [newest + 1]map[string]any
	compiled [newest + 1]*gojsonschema.Schema
}

func loadOfficial(t testing.TB) *official {
	t.Helper()
	dir := officialSuites(t)
	o := &official{}
	for minor := range o.raw {
		data, err := os.ReadFile(filepath.Join(dir, "unified-test-format", "schema", fmt.Sprintf("schema-1.%d.json", minor)))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := readJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		o.raw[minor] = asMap(raw)
		if o.compiled[minor], err = gojsonschema.NewSchema(gojsonschema.NewBytesLoader(data)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (o *official) valid(t testing.TB, minor int, raw any) bool {
	result, err := o.compiled[minor].Validate(gojsonschema.NewRawLoader(raw))
	if err != nil {
		t.Error(err)
		return false
	}
	return result.Valid()
}

// tally counts what was compared.
type tally struct {
	mu           sync.Mutex
	valid, wrong int
	places       map[string]int
}

func (c *tally) add(valid, wrong int, places map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.valid += valid
	c.wrong += wrong
	for p, n := range places {
		c.places[p] += n
	}
}

// same compares three verdicts on a document at a version: that of the
// official schema, that of the derived one, and that of the walk.
func (o *official) same(t *testing.T, set *Set, minor int, raw any, root *source.Value, name string) (valid bool) {
	valid = o.valid(t, minor, raw)
	derived, err := set.verdict(minor, root)
	if err != nil {
		t.Error(err)
		return valid
	}
	if problems := set.explain(minor, root); valid != derived.Valid() || valid != (len(problems) == 0) {
		t.Errorf("%s at 1.%d: valid officially: %v, as derived: %v, by the walk: %v\n%s",
			name, minor, valid, derived.Valid(), problems, encode(raw))
	}
	return valid
}

func encode(raw any) string {
	data, _ := json.Marshal(raw)
	if len(data) > 2000 {
		data = data[:2000]
	}
	return string(data)
}

// each calls a function for every name, on all processors.
func each(t *testing.T, names []string, f func(name string)) {
	t.Helper()
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

// TestOfficialFiles proves that on every official file, at every version, the
// verdict is that of the official schema; and that a file that is valid at a
// version is valid at all later ones, on which LowestFor relies.
func TestOfficialFiles(t *testing.T) {
	o := loadOfficial(t)
	files, read, malformed := rawFiles(t, officialSuites(t))
	names := sortedKeys(files)
	minors := allMinors()
	if testing.Short() {
		minors = []int{0, 3, 17, 18, newest}
	}
	set, count := New(), &tally{}
	each(t, names, func(name string) {
		valid, before, root := 0, false, valueOf(files[name])
		for _, minor := range minors {
			now := o.same(t, set, minor, files[name], root, name)
			if before && !now {
				t.Errorf("%s is valid at an earlier version but not at 1.%d", name, minor)
			}
			if before = now; now {
				valid++
			}
		}
		count.add(valid, len(minors)-valid, nil)
	})
	if read < 900 || malformed > 5 {
		t.Errorf("%d files read and %d malformed, expected at least 900 and at most 5", read, malformed)
	}
	t.Logf("%d files (and %d malformed), %d of them different, at %d versions: %d verdicts valid, %d invalid, compared",
		read, malformed, len(names), len(minors), count.valid, count.wrong)
}

func allMinors() []int {
	minors := make([]int, newest+1)
	for i := range minors {
		minors[i] = i
	}
	return minors
}

// TestOfficialFacts compares what the derived and the official schemas say of
// each place, at every version. It catches every annotation that is off by
// one, which files and mutants may miss, and nothing about how places bear on
// each other, which they catch.
func TestOfficialFacts(t *testing.T) {
	o, set, total := loadOfficial(t), New(), 0
	for minor := range o.raw {
		text, err := set.JSON(versionString(minor))
		if err != nil {
			t.Fatal(err)
		}
		derived, err := readJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		want, got := factsOf(o.raw[minor]), factsOf(asMap(derived))
		total += len(want)
		for _, fact := range sortedKeys(want) {
			if !got[fact] {
				t.Errorf("1.%d lacks: %s", minor, fact)
			}
		}
		for _, fact := range sortedKeys(got) {
			if !want[fact] {
				t.Errorf("1.%d has too much: %s", minor, fact)
			}
		}
	}
	t.Logf("%d facts compared", total)
}

// TestOfficialRows shows that what TestMessages refuses is officially refused
// at every version, or not, alike.
func TestOfficialRows(t *testing.T) {
	o, set := loadOfficial(t), New()
	for _, r := range constraints() {
		root := parse(t, within(r.version, r.where, r.fragment))
		for minor := range o.raw {
			o.same(t, set, minor, plain(root), root, r.reason)
		}
	}
}

// TestMutants proves the same of mutants of the official files and of
// generated documents, which together change every key that a schema has.
func TestMutants(t *testing.T) {
	o := loadOfficial(t)
	docs, _, _ := rawFiles(t, officialSuites(t))
	files := len(docs)
	for name, doc := range docs {
		docs[name] = fewer(doc)
	}
	some, full := 6, 20
	perFile, perGenerated, perPlace := 16, 30, 1
	if testing.Short() {
		full, perFile, perGenerated, perPlace = 2, 1, 3, 1
	}
	words := map[string]bool{}
	for minor := range o.raw {
		wordsOf(o.raw[minor], words)
		o.generate(t, docs, minor, some, false)
	}
	o.generate(t, docs, newest, full, true)

	set, count := New(), &tally{places: map[string]int{}}
	each(t, sortedKeys(docs), func(name string) {
		hash := fnv.New64a()
		hash.Write([]byte(name))
		m := &mutator{rng: rand.New(rand.NewPCG(hash.Sum64(), 4)), words: sortedKeys(words)}
		valid, invalid, changed := 0, 0, map[string]int{}
		mutate := func(at string) {
			doc, place := m.mutate(docs[name], at)
			changed[place]++
			root := valueOf(doc)
			for _, minor := range m.minors(docs[name]) {
				if o.same(t, set, minor, doc, root, "mutant of "+name+" at "+place) {
					valid++
				} else {
					invalid++
				}
			}
		}
		switch {
		case strings.HasPrefix(name, "full "):
			for _, place := range sortedKeys(sitesOf(docs[name])) {
				for range perPlace {
					mutate(place)
				}
			}
		case strings.HasPrefix(name, "generated "):
			for range perGenerated {
				mutate("")
			}
		default:
			for range perFile {
				mutate("")
			}
		}
		count.add(valid, invalid, changed)
	})

	mutants := 0
	for _, n := range count.places {
		mutants += n
	}
	described := placesOf(o.raw[newest])
	var missed []string
	for _, place := range sortedKeys(described) {
		if count.places[place] == 0 && !strings.HasSuffix(place, ".createOptions.writeConcern") { // in no valid document
			missed = append(missed, place)
		}
	}
	if !testing.Short() && mutants < 20_000 {
		t.Errorf("%d mutants are too few", mutants)
	}
	if !testing.Short() && len(missed) > 0 {
		t.Errorf("no mutant changed %d of %d places: %s", len(missed), len(described), strings.Join(missed, " "))
	}
	t.Logf("%d mutants of %d different files and %d generated documents, at all but %d of the %d places that the schema describes: %d verdicts valid, %d invalid, compared",
		mutants, files, len(docs)-files, len(missed), len(described), count.valid, count.wrong)
}

// generate adds documents that are valid at a version.
func (o *official) generate(t *testing.T, docs map[string]any, minor, n int, all bool) {
	t.Helper()
	kind := map[bool]string{false: "generated", true: "full"}[all]
	for i := range n {
		g := generator{root: o.raw[minor], rng: rand.New(rand.NewPCG(uint64(minor), uint64(i))), all: all}
		name := fmt.Sprintf("%s %d of 1.%d", kind, i, minor)
		docs[name] = g.suite(versionString(minor))
		if !o.valid(t, minor, docs[name]) {
			t.Fatalf("%s is not valid:\n%s", name, encode(docs[name]))
		}
	}
}

// minors gives the versions at which a mutant is tried: the one that the
// document declares, the newest, and two others.
func (m *mutator) minors(doc any) []int {
	minors := []int{newest, m.rng.IntN(newest + 1), m.rng.IntN(newest + 1)}
	if declared, ok := asMap(doc)["schemaVersion"].(string); ok {
		if minor, err := minorOf(declared); err == nil {
			minors = append(minors, minor)
		}
	}
	slices.Sort(minors)
	return slices.Compact(minors)
}

// fewer leaves a suite at most two tests, so that mutants are quick.
func fewer(doc any) any {
	if tests := asList(asMap(doc)["tests"]); len(tests) > 2 {
		c := maps.Clone(asMap(doc))
		c["tests"] = tests[:2]
		return c
	}
	return doc
}
