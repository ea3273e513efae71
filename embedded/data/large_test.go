package data

import (
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

// An event that is too large for a document ends the stream.
func TestLargeEvents(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c","changeStreamPreAndPostImages":{"enabled":true}}`)
	b.must(`{"insert":"c","documents":[{"_id":1,"value":"` + strings.Repeat("q", 10<<20) + `"}]}`)
	open := b.must(`{"aggregate":"c","pipeline":[{"$changeStream":{"fullDocumentBeforeChange":"required"}}],"cursor":{}}`)
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"value":"` + strings.Repeat("z", 10<<20) + `"}}}]}`)
	if got := b.code(fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c","maxTimeMS":1}`, cursorID(open))); got != 10334 {
		t.Errorf("code %d", got)
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
