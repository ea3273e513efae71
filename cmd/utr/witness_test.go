//go:build unix

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// onlooker is a client that has nothing to do with the run.
func onlooker(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the server may be gone
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client
}

// ask runs a command on admin.
func ask(t *testing.T, client *mongo.Client, command bson.D) (bson.Raw, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return client.Database("admin").RunCommand(ctx, command).Raw()
}

// struck waits until a failCommand has struck on some member of a deployment:
// the run is in the middle of a test.
func struck(t *testing.T, uri string) {
	t.Helper()
	var members []*mongo.Client
	hosts, _, _ := strings.Cut(strings.TrimPrefix(uri, "mongodb://"), "/")
	for _, host := range strings.Split(hosts, ",") {
		members = append(members, onlooker(t, "mongodb://"+host+"/?directConnection=true"))
	}
	until(t, "the fail point has struck", func() bool {
		for _, m := range members {
			reply, err := ask(t, m, bson.D{{Key: "getParameter", Value: 1}, {Key: "failpoint.failCommand", Value: 1}})
			if n, ok := reply.Lookup("failpoint.failCommand", "timesEntered").AsInt64OK(); err == nil && ok && n > 0 {
				return true
			}
		}
		return false
	})
}
