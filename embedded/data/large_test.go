package data

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data/value"
)

func batchOf(reply bson.D) (batch []bson.Raw) {
	c, _ := value.Field(reply, "cursor")
	cursor, _ := c.(bson.D)
	for _, k := range []string{"firstBatch", "nextBatch"} {
		if v, ok := value.Field(cursor, k); ok {
			batch = v.([]bson.Raw)
		}
	}
	return batch
}

// An event that is too large for a document comes in fragments, if the stream asks
// for that, and may be resumed between them.
func TestLargeEvents(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c","changeStreamPreAndPostImages":{"enabled":true}}`)
	b.must(`{"insert":"c","documents":[{"_id":1,"value":"` + strings.Repeat("q", 10<<20) + `"}]}`)
	watch := func(stages string) string {
		return `{"aggregate":"c","pipeline":[{"$changeStream":{"fullDocumentBeforeChange":"required"}}` + stages + `],"cursor":{}}`
	}
	split, whole := b.must(watch(`,{"$changeStreamSplitLargeEvent":{}}`)), b.must(watch(``))
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"value":"` + strings.Repeat("z", 10<<20) + `"}}}]}`)
	next := func(open bson.D) string {
		return fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c","maxTimeMS":1}`, cursorID(open))
	}
	var found []string
	var first, second bson.Raw
	for _, into := range []*bson.Raw{&first, &second} {
		*into = batchOf(b.must(next(split)))[0]
		elements, _ := (*into).Elements()
		var keys []string
		for _, e := range elements {
			keys = append(keys, e.Key())
		}
		found = append(found, fmt.Sprint((*into).Lookup("splitEvent"), keys[2:]))
	}
	if got, want := strings.Join(found, "; "), `{"fragment": {"$numberInt":"1"},"of": {"$numberInt":"2"}} [wallTime clusterTime operationType documentKey ns `+
		`fullDocumentBeforeChange]; {"fragment": {"$numberInt":"2"},"of": {"$numberInt":"2"}} [updateDescription]`; got != want {
		t.Errorf("the fragments are %s, want %s", got, want)
	}
	resume := func(from bson.Raw) string {
		return `{"aggregate":"c","pipeline":[{"$changeStream":{"fullDocumentBeforeChange":"required","resumeAfter":` + from.Lookup("_id").String() +
			`}},{"$changeStreamSplitLargeEvent":{}}],"cursor":{}}`
	}
	if got := batchOf(b.must(resume(first))); len(got) != 1 || !bytes.Equal(got[0], second) {
		t.Errorf("%d events follow the first fragment", len(got))
	}
	if got := batchOf(b.must(resume(second))); len(got) != 0 {
		t.Errorf("%d events follow the last fragment", len(got))
	}
	if got := b.code(next(whole)); got != 10334 {
		t.Errorf("an event that is too large: code %d", got)
	}
	if got := b.code(watch(`,{"$changeStreamSplitLargeEvent":{}},{"$match":{}}`)); got != 7182802 {
		t.Errorf("not the last stage: code %d", got)
	}
}

func TestTimeOfAClient(t *testing.T) {
	b := replicaSet(t)
	before := b.d.OperationTime()
	told := bson.Timestamp{T: before.T + 5, I: 3}
	b.d.ClusterTime(told)
	if got := b.d.ClusterTime(before); got != told || b.d.OperationTime() != before {
		t.Errorf("the time is %v after a client has heard of %v", got, told)
	}
	b.must(`{"insert":"c","documents":[{}]}`)
	if got := b.d.OperationTime(); !got.After(told) {
		t.Errorf("a write has the time %v, a client has heard of %v", got, told)
	}
}
