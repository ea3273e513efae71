package counter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/replies"
)

// connect opens a client of one server with the credentials of the connection string. It does not retry reads.
func (c Config) connect(ctx context.Context, host string, selection time.Duration,
	retryWrites bool) (*mongo.Client, func(), error) {
	o := options.Client().ApplyURI(c.URI)
	o.ReplicaSet, o.Compressors = nil, nil // a proxy reads the messages
	client, err := mongo.Connect(o.SetHosts([]string{host}).SetDirect(true).SetRetryWrites(retryWrites).SetRetryReads(false).
		SetServerSelectionTimeout(selection).SetHeartbeatInterval(500 * time.Millisecond))
	return client, func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }, err
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
