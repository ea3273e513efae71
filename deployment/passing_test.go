package deployment

import (
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/embedded"
)

func TestPassing(t *testing.T) {
	for _, r := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"all is well", nil, false},
		{"of nobody", errors.New("it is dark"), false},
		{"the primary stepped down", mongo.CommandError{Code: 189}, true},
		{"wrapped", fmt.Errorf("insert: %w", mongo.CommandError{Code: 10107}), true},
		{"a mongos finds no primary", mongo.CommandError{Code: 133}, true},
		{"a shard is not reached", mongo.CommandError{Code: 6}, true},
		{"the network", mongo.CommandError{Labels: []string{"NetworkError"}}, true},
		{"the command is wrong", mongo.CommandError{Code: 9}, false},
		{"a write that was done and not waited for", mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 11602}}, true},
		{"wtimeout", mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}}, false},
		{"a write that was not done", mongo.WriteException{
			WriteErrors: mongo.WriteErrors{{Code: 11000}}, WriteConcernError: &mongo.WriteConcernError{Code: 91}}, false},
	} {
		if got := Passing(r.err); got != r.want {
			t.Errorf("%s: %t", r.reason, got)
		}
	}
}

// A lock that was written just as the primary stepped down is taken again, and
// one that no majority has is not.
func TestLockWithoutAMajority(t *testing.T) {
	for _, r := range []struct {
		reason string
		code   int32
		taken  bool
	}{
		{"the primary stepped down", 189, true},
		{"the others are late", 64, false},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serving(t, embedded.Options{Topology: embedded.ReplicaSet})
			if err := admin(t, d.URI()).Database("admin").RunCommand(within(t), bson.D{
				{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"findAndModify"}},
					{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: r.code}, {Key: "errmsg", Value: "so it is"}}}}},
			}).Err(); err != nil {
				t.Fatal(err)
			}
			l, err := AcquireLock(within(t), d.URI(), LockOptions{})
			if (err == nil) != r.taken {
				t.Fatal(err)
			}
			if err == nil {
				release(t, l)
			}
			if h := lockOf(t, d.URI()); h != nil {
				t.Errorf("the lock is left: %+v", h)
			}
		})
	}
}

// A user who may not read the list of shards can use the cluster all the same:
// what it would tell is known.
func TestShardsThatMayNotBeRead(t *testing.T) {
	d := serving(t, embedded.Options{Topology: embedded.Sharded, Users: []embedded.User{{Name: "u", Password: "pw"}}})
	u, err := parseURI(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(code int) {
		for _, host := range u.hosts {
			if err := admin(t, u.direct(host).String()).Database("admin").RunCommand(within(t), bson.D{
				{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: code}}},
			}).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	refuse(codeUnauthorized)
	s, err := OpenCluster(within(t), ClusterOptions{URI: d.URI()})
	if err != nil {
		t.Fatal(err)
	}
	if about := s.Offers()[0]; about.Topology != Sharded || !about.ReplicaSetShards {
		t.Errorf("%+v", about)
	}
	refuse(codeInvalidOptions)
	if _, err := OpenCluster(within(t), ClusterOptions{URI: d.URI()}); err == nil {
		t.Error("another error is passed over, too")
	}
}
