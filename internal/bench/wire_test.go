package bench

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// BenchmarkRoundTrip has the Go driver find n documents of 100 bytes on an
// embedded standalone. The peer answers with as many bytes over a socket of the
// loopback interface and does nothing else: no client and no server can be
// faster than that.
func BenchmarkRoundTrip(b *testing.B) {
	const work, size = "find documents with the Go driver", 100
	sizes := []int{1, 16, 64, 256}
	client := standalone(b)
	coll := client.Database("bench").Collection("documents")
	ctx := context.Background()
	for i := range sizes[len(sizes)-1] {
		d := bson.D{{Key: "_id", Value: int32(i)}, {Key: "text", Value: ""}}
		raw, err := bson.Marshal(d)
		if err != nil {
			b.Fatal(err)
		}
		d[1].Value = string(bytes.Repeat([]byte("x"), size-len(raw)))
		if _, err := coll.InsertOne(ctx, d); err != nil {
			b.Fatal(err)
		}
	}
	measure(b, work, "documents", "embedded standalone", sizes, func(b *testing.B, n int) {
		b.SetBytes(int64(n * size))
		for b.Loop() {
			cursor, err := coll.Find(ctx, bson.D{}, options.Find().SetLimit(int64(n)).SetBatchSize(int32(n+1)))
			if err != nil {
				b.Fatal(err)
			}
			found := 0
			for cursor.Next(ctx) {
				found++
			}
			if err := cursor.Close(ctx); err != nil || found != n {
				b.Fatalf("%d documents, want %d (%v)", found, n, err)
			}
		}
		roundTrips(b)
	})
	measurePeer(b, work, "documents", "bare socket", sizes, func(b *testing.B, n int) {
		c := echo(b, n*size)
		request, reply := make([]byte, size), make([]byte, n*size)
		b.SetBytes(int64(n * size))
		for b.Loop() {
			if _, err := c.Write(request); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, reply); err != nil {
				b.Fatal(err)
			}
		}
		roundTrips(b)
	})
}

// BenchmarkClients has goroutines ping through one client, each on a
// connection of its own: the time is that of one ping among all.
func BenchmarkClients(b *testing.B) {
	client := standalone(b)
	db, ctx := client.Database("bench"), context.Background()
	measure(b, "ping with the Go driver", "goroutines", "embedded standalone", []int{1, 4, 16, 64}, func(b *testing.B, n int) {
		work := make(chan struct{})
		failed := make(chan error, n)
		for range n {
			go func() {
				var failure error
				for range work {
					failure = db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err()
				}
				failed <- failure
			}()
		}
		for b.Loop() {
			work <- struct{}{}
		}
		b.StopTimer()
		close(work)
		for range n {
			if err := <-failed; err != nil {
				b.Fatal(err)
			}
		}
		roundTrips(b)
	})
}

func roundTrips(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "round-trips/s") }

// standalone starts one, with a client that is connected.
func standalone(b *testing.B) *mongo.Client {
	b.Helper()
	ctx := context.Background()
	d, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(d.URI()))
	if err == nil {
		err = client.Ping(ctx, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := client.Disconnect(ctx); err != nil {
			b.Error(err)
		}
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	})
	return client
}

// echo gives a connection whose other end answers every 100 bytes with a
// reply of the given size.
func echo(b *testing.B, size int) net.Conn {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		request, reply := make([]byte, 100), make([]byte, size)
		for {
			if _, err := io.ReadFull(c, request); err != nil {
				return
			}
			if _, err := c.Write(reply); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_, _ = c.Close(), l.Close()
		<-done
	})
	return c
}

// BenchmarkStart starts embedded deployments, which then are ready for
// clients, and does not measure closing them.
func BenchmarkStart(b *testing.B) {
	sizes := []int{1, 3, 12, 48}
	for _, row := range []struct {
		who     string
		options func(n int) embedded.Options
	}{
		{"replica set", func(n int) embedded.Options { return embedded.Options{Topology: embedded.ReplicaSet, Members: n} }},
		{"sharded", func(n int) embedded.Options { return embedded.Options{Topology: embedded.Sharded, Mongoses: n} }},
		{"load balanced", func(n int) embedded.Options { return embedded.Options{Topology: embedded.LoadBalanced, Mongoses: n} }},
	} {
		measure(b, "start an embedded deployment", "servers", row.who, sizes, func(b *testing.B, n int) { start(b, row.options(n)) })
	}
	measure(b, "start an embedded standalone", "server", "standalone", []int{1}, func(b *testing.B, _ int) { start(b, embedded.Options{}) })
}

func start(b *testing.B, o embedded.Options) {
	for b.Loop() {
		d, err := embedded.Start(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
