package replay

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// comparison compares a reply with the recorded one. Paths begin with a dot.
type comparison struct {
	p     *player
	step  step
	diff  []string
	minor []string // differences in the order of fields and in messages
	// symptoms are the first difference and the first minor one, briefly.
	symptom, minorSymptom string
}

func (p *player) compare(s step, got, want bson.D) []string {
	c := comparison{p: p, step: s}
	c.document("", got, want)
	p.minor, p.symptom = c.minor, cmp.Or(c.symptom, c.minorSymptom)
	if g, w := outcome(got), outcome(want); g != w {
		p.symptom = fmt.Sprintf("%s for %s", g, w)
	} else if p.symptom == ".errmsg" {
		p.symptom += " of " + g
	}
	return append(c.diff, c.minor...)
}

// outcome returns ok, the code of the reply, or that of its first error.
func outcome(reply bson.D) string {
	if errs := value.As[bson.A](reply, "writeErrors"); len(errs) > 0 {
		reply = errs[0].(bson.D)
	}
	code := value.Get(reply, "code")
	if code == nil && value.Get(reply, "errmsg") != nil {
		return "no code"
	}
	return fmt.Sprint(cmp.Or(code, any("ok")))
}

var index = regexp.MustCompile(`\.\d+`)

func (c *comparison) differ(path string, got, want any) {
	list, first := &c.diff, &c.symptom
	if strings.HasSuffix(path, ".errmsg") || strings.HasSuffix(path, "~") {
		list, first = &c.minor, &c.minorSymptom
	}
	if *first == "" {
		*first = index.ReplaceAllString(path, ".N") + symptom(got, want)
	}
	*list = append(*list, fmt.Sprintf("%s: got %T %v, want %T %v", strings.TrimSuffix(path, "~"), got, got, want, want))
}

// symptom describes the difference of two values: the fields that only one document has, or the types.
func symptom(got, want any) (out string) {
	g, isDocument := got.(bson.D)
	w, _ := want.(bson.D)
	if !isDocument {
		if reflect.TypeOf(got) != reflect.TypeOf(want) {
			return fmt.Sprintf(" %T for %T", got, want)
		}
		return ""
	}
	for _, e := range g {
		if value.Get(w, e.Key) == nil {
			out += " +" + e.Key
		}
	}
	for _, e := range w {
		if value.Get(g, e.Key) == nil {
			out += " -" + e.Key
		}
	}
	return out
}

func (c *comparison) document(path string, got, want bson.D) {
	g, w := keys(got), keys(want)
	inOrder := slices.Equal(g, w)
	slices.Sort(g)
	slices.Sort(w)
	switch {
	case !slices.Equal(g, w):
		c.differ(path, got, want)
	case !inOrder:
		c.differ(path+"~", got, want)
	}
	for _, w := range want {
		if i := slices.IndexFunc(got, func(g bson.E) bool { return g.Key == w.Key }); i >= 0 {
			c.value(path+"."+w.Key, got[i].Value, w.Value)
		}
	}
}

func keys(doc bson.D) (names []string) {
	for _, e := range doc {
		names = append(names, e.Key)
	}
	return names
}

// random matches UUIDs of collections and index builds, and times of the clock, in messages.
var random = regexp.MustCompile(`(resolve|UUID|failed:|Collection \S+ \() [0-9a-f-]{36}|Timestamp\(\d+, \d+\)`)

// volatile are fields whose values differ between runs. Only their types are compared.
var volatile = map[string]bool{
	"localTime": true, "connectionId": true, "processId": true, "counter": true, "you": true, "pid": true,
	"uptime": true, "hash": true, "collectionUUID": true, "uuid": true, "_data": true, "totalSize": true,
	"sizeOnDisk": true, "storageSize": true, "indexSize": true, "fsUsedSize": true, "fsTotalSize": true, "since": true,
	"ops": true, "host": true, "latency": true,
	"current": true, "totalCreated": true, "command": true, "commands": true, "ui": true, "nonce": true,
	"oidMachine": true, "hostname": true, "memSizeMB": true, "memLimitMB": true, "numCores": true, "cc": true,
	"ccflags": true, "cxx": true, "cxxflags": true, "linkflags": true, "cppdefines": true,
	"distmod": true, "distarch": true, "target_arch": true, "target_os": true, "gitVersion": true, "allocator": true,
}

func (c *comparison) value(path string, got, want any) {
	name, same := path[strings.LastIndex(path, ".")+1:], c.p.same
	if reflect.TypeOf(got) != reflect.TypeOf(want) {
		c.differ(path, got, want)
		return
	}
	switch w := want.(type) {
	case bson.D:
		c.document(path, got.(bson.D), w)
		return
	case bson.A:
		g := got.(bson.A)
		if len(g) != len(w) {
			c.differ(path, g, w)
		}
		if c.sent("listCollections") { // the real server's order is that of a hash table
			byText := func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
			g, w = slices.SortedStableFunc(slices.Values(g), byText), slices.SortedStableFunc(slices.Values(w), byText)
		}
		for i := range min(len(g), len(w)) {
			c.value(fmt.Sprint(path, ".", i), g[i], w[i])
		}
		return
	case bson.Timestamp, bson.DateTime:
		same[want] = got
		return
	case int32:
		if path == ".count" && c.sent("configureFailPoint") {
			// Counts of the real server include earlier tests: only their increase is compared.
			point := fmt.Sprint(c.step.Server, testkit.Extended[bson.D](c.p.t, c.step.Send)[0].Value)
			delta := w - got.(int32)
			if before, known := c.p.behind[point]; known && before != delta {
				c.differ(path, got, w-before)
			}
			c.p.behind[point] = delta
			return
		}
	case int64:
		switch {
		case path == ".cursor.id":
			if same[want] = got; (got.(int64) == 0) != (w == 0) {
				c.differ(path, got, want)
			}
			return
		case name == "counter":
			same[counter(w)] = got
			return
		case same[want] == got: // a cursor id
			return
		}
	case string:
		if _, known := same[want]; volatile[name] && !known {
			same[want] = got
		}
		for real, ours := range same {
			if id, ok := real.(int64); ok && id > 1<<40 {
				w = strings.ReplaceAll(w, fmt.Sprint(id), fmt.Sprint(ours))
			}
		}
		want, got = random.ReplaceAllString(w, "$1"), random.ReplaceAllString(got.(string), "$1")
	case bson.ObjectID: // may be random
		if _, known := same[want]; !known && name != "electionId" || volatile[name] {
			same[want] = got
			return
		}
		want = cmp.Or(same[want], want)
	case bson.Binary: // may be a random id
		if path == ".id.id" && c.sent("startSession") || path == ".cursor.firstBatch.0._id.id" &&
			c.sent("listLocalSessions") ||
			name == "payload" && c.p.payload != nil && c.p.payload(c.step, got.(bson.Binary).Data, w.Data) {
			return
		}
	}
	if !volatile[name] && !reflect.DeepEqual(got, want) {
		c.differ(path, got, want)
	}
}

func (c *comparison) sent(name string) bool { return strings.Contains(string(c.step.Send), name) }

func TestComparison(t *testing.T) {
	p := &player{t: t, same: map[any]any{}, behind: map[string]int32{}}
	testkit.PlayCases(t, "testdata/compare.txt", func(t *testing.T, in string) string {
		got, want, _ := strings.Cut(in, " for ")
		diff := p.compare(step{Send: []byte(`{"configureFailPoint": "failCommand"}`)}, testkit.Extended[bson.D](t, got),
			testkit.Extended[bson.D](t, want))
		return cmp.Or(strings.Join(diff, "; "), "equal")
	})
}
