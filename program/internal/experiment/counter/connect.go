package counter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// connect opens a client with options.
func (c Config) connect(ctx context.Context, host string, selection time.Duration,
	retryWrites bool) (*mongo.Client, func(), error) {
	client, err := mongo.Connect(c.options(host, selection, retryWrites))
	return client, func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }, err
}

// options returns the options of a client of one server with the credentials of the connection string. It does not
// retry reads. It checks the server only when an operation waits for it: the driver cancels a check when an operation
// fails. If the check has already succeeded, the next one on its connection fails and clears the pool again, and a
// retry that waits for a connection is not sent.
func (c Config) options(host string, selection time.Duration, retryWrites bool) *options.ClientOptions {
	o := replies.Own(options.Client().ApplyURI(c.URI))
	o.ReplicaSet, o.Compressors = nil, nil // a proxy reads the messages
	return o.SetHosts([]string{host}).SetDirect(true).SetRetryWrites(retryWrites).SetRetryReads(false).
		SetServerSelectionTimeout(selection).SetHeartbeatInterval(time.Hour)
}

// server returns the address of the primary, or the first address of the connection
// string for mongos and standalones.
func (c Config) server(ctx context.Context) (string, error) {
	o := replies.Own(options.Client().ApplyURI(c.URI).SetServerSelectionTimeout(10 * time.Second))
	if o.TLSConfig != nil {
		return "", errors.New("a proxy reads the messages, which must not be encrypted")
	}
	client, err := mongo.Connect(o)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	var hello struct{ Primary string }
	// Servers before 4.4.2 have no hello.
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}).Decode(&hello); err != nil {
		return "", fmt.Errorf("finding the primary: %w", err)
	}
	if hello.Primary == "" {
		return o.Hosts[0], nil
	}
	return hello.Primary, nil
}
