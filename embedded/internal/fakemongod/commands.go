package main

import (
	"context"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// backend adds the commands about processes, which an embedded deployment does not have, to the commands on data.
type backend struct {
	*commands.Deployment
	shutdown func(address string) // ends the process of a server
}

// Rows returns the commands. Package server executes them.
func (b backend) Rows() []commands.Row {
	return append(b.Deployment.Rows(), row("shutdown", b.shutDown), row("addShard", b.addShard))
}

// row returns the row of a command of a process.
func row(name string, run func(*commands.Request) (bson.D, error)) commands.Row {
	return commands.Row{Name: name, AdminOnly: true, LocalhostException: name != "shutdown", OnSecondary: true,
		Coordinated: true, Parse: respond(run)}
}

// respond returns the Parse of a command that run executes.
func respond(run func(*commands.Request) (bson.D, error)) func(*commands.Request) (func() (commands.Response, error),
	error) {
	return func(req *commands.Request) (func() (commands.Response, error), error) {
		return func() (commands.Response, error) {
			fields, err := run(req)
			return commands.Response{Fields: fields}, err
		}, nil
	}
}

// addShard records a shard, or updates its record. It never receives data.
func (b backend) addShard(req *commands.Request) (bson.D, error) {
	host, _ := req.Body.Index(0).Value().StringValueOK()
	name, named := req.Body.Lookup("name").StringValueOK()
	if !named {
		name, _, _ = strings.Cut(host, "/") // the name of the replica set
	}
	shard := value.Doc("_id", name, "host", host, "state", int32(1), "topologyTime", b.OperationTime())
	return value.Doc("shardAdded", name), b.record(req, shard)
}

// record writes a document of config.shards.
func (b backend) record(req *commands.Request, shard bson.D) error {
	update := *req
	for _, row := range b.Deployment.Rows() {
		if row.Name == "update" {
			update.Row = &row
		}
	}
	update.Name, update.DB = "update", "config"
	update.Body = value.Encode(value.Doc("update", "shards", "updates",
		bson.A{value.Doc("q", shard[:1], "u", shard, "upsert", true)}, "$db", "config"))
	do, err := update.Row.Parse(&update)
	if err == nil {
		_, err = do()
	}
	return err
}

// shutDown ends the process, without a reply.
func (b backend) shutDown(req *commands.Request) (bson.D, error) {
	b.shutdown(req.Server.Address)
	return nil, failpoint.ErrClose
}

// clearShards empties config.shards: addShard adds the shards.
func (b backend) clearShards() {
	_ = b.NewWork(context.Background(), time.Time{}, 0).Update(func(tx *store.Tx) error {
		c := tx.Main("config", "shards")
		return tx.Remove(c, c.Current()[0])
	})
}
