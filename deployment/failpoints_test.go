package deployment

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
)

// arm sets a fail point on one member, as a run that was killed leaves it.
func arm(t *testing.T, uri, name string, mode any, data bson.D) {
	t.Helper()
	command := bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: mode}, {Key: "data", Value: data}}
	if err := admin(t, uri).Database("admin").RunCommand(within(t), command).Err(); err != nil {
		t.Fatal(err)
	}
}

// failing is the data of failCommand for one command.
func failing(command string) bson.D {
	return bson.D{{Key: "failCommands", Value: bson.A{command}}, {Key: "errorCode", Value: 8}}
}

// Fail points that an earlier run left on are noticed on each member, whatever
// they break, and are off afterwards.
func TestLeftFailPoints(t *testing.T) {
	for _, r := range []struct {
		reason string
		o      embedded.Options
		member int // that is armed
		name   string
		mode   any
		data   bson.D
		want   string
	}{
		{"on the primary", embedded.Options{Topology: embedded.ReplicaSet}, 0, "failCommand", "alwaysOn", failing("find"), "failCommand was on at HOST (alwaysOn, struck 0 times): "},
		{"on a secondary", embedded.Options{Topology: embedded.ReplicaSet}, 2, "failCommand", bson.D{{Key: "times", Value: 5}}, failing("find"), "failCommand was on at HOST (times, struck 0 times)"},
		{"on the second mongos, which the look at the cluster does not meet", embedded.Options{Topology: embedded.Sharded}, 1, "failCommand", bson.D{{Key: "skip", Value: 3}}, failing("insert"), "failCommand was on at HOST (skip"},
		{"the look itself would fail", embedded.Options{Topology: embedded.Standalone}, 0, "failCommand", "alwaysOn", failing("buildInfo"), "failCommand was on at HOST"},
		{"the look itself would fail on a mongos", embedded.Options{Topology: embedded.Sharded, Mongoses: 1}, 0, "failCommand", "alwaysOn", failing("find"), "failCommand was on at HOST"},
		{"another one", embedded.Options{Topology: embedded.ReplicaSet}, 0, "onPrimaryTransactionalWrite", "alwaysOn", bson.D{}, "onPrimaryTransactionalWrite was on at HOST"},
		{"at random", embedded.Options{Topology: embedded.Standalone}, 0, "failCommand", bson.D{{Key: "activationProbability", Value: 0.5}}, failing("find"), "(random, "},
		{"on a server that does not count", embedded.Options{Topology: embedded.ReplicaSet, Version: "4.2"}, 0, "failCommand", "alwaysOn", failing("find"), "failCommand was on at HOST (alwaysOn): "},
		{"with access control", embedded.Options{Topology: embedded.ReplicaSet, Users: []embedded.User{{Name: "u", Password: "s3cret-pw"}}}, 0, "failCommand", "alwaysOn", failing("find"), "failCommand was on at HOST"},
		{"behind a load balancer", embedded.Options{Topology: embedded.LoadBalanced}, 0, "failCommand", "alwaysOn", failing("find"), "failCommand was on at service "},
		{"nothing is on", embedded.Options{Topology: embedded.ReplicaSet}, 0, "failCommand", "off", bson.D{}, ""},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serving(t, r.o)
			host := d.Hosts()[r.member]
			direct := d.DirectURI(host)
			arm(t, direct, r.name, r.mode, r.data)
			var told notes
			s, err := OpenCluster(within(t), ClusterOptions{URI: d.URI(), SingleURI: d.SingleURI(), Lock: &LockOptions{}, Note: told.add})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			if want := strings.ReplaceAll(r.want, "HOST", host); want == "" && told.String() != "" || !strings.Contains(told.String(), want) {
				t.Errorf("people are told %q, want %q", told.String(), want)
			}
			if strings.Contains(told.String(), "s3cret") {
				t.Errorf("a password is told: %s", told.String())
			}
			reply, err := admin(t, direct).Database("admin").RunCommand(within(t), lookFor(suiteFailPoints)).Raw()
			if err != nil || len(on(host, reply)) > 0 {
				t.Errorf("still on: %v %v", on(host, reply), err)
			}
		})
	}
}

// A deployment that was not locked is left as it is: it may be in use.
func TestFailPointsOfOthersStay(t *testing.T) {
	d := serving(t, embedded.Options{Topology: embedded.ReplicaSet})
	first, err := AcquireLock(within(t), d.URI(), LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, first)
	arm(t, d.URI(), "failCommand", "alwaysOn", failing("find"))
	if _, err := OpenCluster(within(t), ClusterOptions{URI: d.URI(), Lock: &LockOptions{}}); err == nil {
		t.Error("the second run is not refused")
	}
	s, err := OpenCluster(within(t), ClusterOptions{URI: d.URI()})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	reply, err := admin(t, d.URI()).Database("admin").RunCommand(within(t), lookFor(suiteFailPoints)).Raw()
	if err != nil || len(on("", reply)) != 1 {
		t.Errorf("the fail point of the first run: %v %v", reply, err)
	}
}

// A member that is down is told, holds nothing up for long, and keeps the
// others from nothing. utr clean asks by ClearFailPoints.
func TestSweepWithoutAMember(t *testing.T) {
	d := serving(t, embedded.Options{Topology: embedded.ReplicaSet})
	hosts := d.Hosts()
	arm(t, d.DirectURI(hosts[1]), "failCommand", "alwaysOn", failing("find"))
	if err := d.Kill(hosts[2]); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	swept, err := ClearFailPoints(within(t), Target{URI: d.URI()}, "someOther")
	if err != nil {
		t.Fatal(err)
	}
	if len(swept.Off) != 1 || swept.Off[0].Member != hosts[1] || swept.Off[0].Name != "failCommand" {
		t.Errorf("turned off: %v", swept.Off)
	}
	if len(swept.Unasked) != 1 || !strings.HasPrefix(swept.Unasked[0].Error(), hosts[2]+" could not be asked") {
		t.Errorf("not asked: %v", swept.Unasked)
	}
	if took := time.Since(begun); took > sweepLimit+patience/2 {
		t.Errorf("it took %s", took)
	}
	if _, err := ClearFailPoints(within(t), Target{URI: "mongodb://u:s3cret@127.0.0.1:1/?serverSelectionTimeoutMS=50"}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("nothing listens: %v", err)
	}
}
