package compose

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// The order of the fields, as in recordings of 4.9 and 5.0.
func TestOrder(t *testing.T) {
	one := func(key string) bson.D { return bson.D{{Key: key, Value: 1}} }
	old, present, mongos := Facts{Wire: 12}, Facts{Wire: 13}, Facts{Wire: 13, Mongos: true}
	failed := &fault.Error{Code: fault.NotWritablePrimary, Extra: one("extra")}
	success := bson.D{{Key: "code", Value: int32(64)}}
	for _, row := range []struct {
		name string
		Reply
		want string
	}{
		{"a mongod", Reply{Facts: present, Concern: success}, "n writeConcernError ok errorLabels times after"},
		{"a mongod before 5.0", Reply{Facts: old, Concern: success}, "n ok writeConcernError errorLabels times after"},
		{"a mongos", Reply{Facts: mongos, Concern: success}, "n writeConcernError errorLabels ok times after"},
		{"a mongos with the fail point's write concern error of its shard",
			Reply{Facts: mongos, Concern: success, Appended: true}, "n ok writeConcernError errorLabels times after"},
		{"a failing mongod", Reply{Facts: present, Failure: failed, Concern: success},
			"writeConcernError errorLabels topologyVersion n ok errmsg code codeName extra times after"},
		{"a failing mongos that passes on the failure", Reply{Facts: mongos, Failure: failed},
			"errorLabels topologyVersion n ok errmsg code codeName extra times after"},
		{"a failing mongos with the fail point's write concern error of its shard",
			Reply{Facts: mongos, Failure: failed, Concern: success, Appended: true},
			"topologyVersion n ok errmsg code codeName extra writeConcernError errorLabels times after"},
	} {
		row.Fields, row.Labels, row.After = one("n"), []string{"l"}, one("after")
		row.Times = func() bson.D { return one("times") }
		row.Topology = func() any { return one("counter") }
		testkit.Equal(t, row.name, keys(row.Compose()), row.want)
	}
	alone := Reply{Facts: mongos, Failure: failed, Fields: one("n"), Labels: []string{"l"},
		Times: func() bson.D { return one("times") }, Topology: func() any { return nil }}
	testkit.Equal(t, "a failing mongos itself", keys(alone.Compose()), "n ok errmsg code codeName extra times errorLabels")
	testkit.Equal(t, "an amended reply", keys(alone.Amend()), "n errorLabels")
}

func keys(doc bson.Raw) string {
	elements, _ := doc.Elements()
	var out []string
	for _, e := range elements {
		out = append(out, e.Key())
	}
	return strings.Join(out, " ")
}

// Labels of a fail point replace the server's, and are also in a reply without an error. The base backoff
// accompanies the label of an overload error.
func TestLabels(t *testing.T) {
	overloaded := &fault.Error{Code: 462, Labels: []string{"own"}}
	for _, row := range []struct {
		Reply
		want string
	}{
		{Reply{}, ""},
		{Reply{Labels: []string{"l"}}, "errorLabels"},
		{Reply{Labels: []string{}, Failure: overloaded}, ""},
		{Reply{Labels: []string{codes.SystemOverloadedError}, Failure: overloaded}, "errorLabels baseBackoffMS"},
		{Reply{Facts: Facts{Wire: 25}, Failure: overloaded}, "errorLabels"},
	} {
		row.Backoff = func() int64 { return 5 }
		row.SetLabels()
		testkit.Equal(t, "the fields", keys(row.inOrder([]part{labelFields})), row.want)
	}
}
