package bench

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// BenchmarkRoundTrip finds n documents of 100 bytes with the Go driver on an embedded
// standalone. It is compared with a server that only sends as many bytes over a
// loopback socket: the upper limit for any client and server.
func BenchmarkRoundTrip(b *testing.B) {
	const size = 100
	sizes := []int{1, 16, 64, 256}
	client := standalone(b)
	coll := client.Database("bench").Collection("documents")
	ctx := context.Background()
	for i := range sizes[len(sizes)-1] {
		d := testkit.D("_id", int32(i), "text", "")
		d[1].Value = strings.Repeat("x", size-len(testkit.Raw(b, d)))
		_, err := coll.InsertOne(ctx, d)
		testkit.Check(b, err)
	}
	measure(b, "embedded", "documents", sizes, func(b *testing.B, n int) {
		b.SetBytes(int64(n * size))
		for b.Loop() {
			cursor, err := coll.Find(ctx, bson.D{}, options.Find().SetLimit(int64(n)).SetBatchSize(int32(n+1)))
			testkit.Check(b, err)
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
	measure(b, "bare-socket", "documents", sizes, func(b *testing.B, n int) {
		c := echo(b, n*size)
		request, reply := make([]byte, size), make([]byte, n*size)
		b.SetBytes(int64(n * size))
		for b.Loop() {
			_, err := c.Write(request)
			testkit.Check(b, err)
			_, err = io.ReadFull(c, reply)
			testkit.Check(b, err)
		}
		roundTrips(b)
	})
}

func roundTrips(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "round-trips/s") }

// standalone returns a connected client of an embedded standalone.
func standalone(b *testing.B) *mongo.Client {
	b.Helper()
	ctx := context.Background()
	d, err := embedded.Start(ctx, embedded.Options{})
	testkit.Check(b, err)
	client, err := mongo.Connect(options.Client().ApplyURI(d.URI()))
	testkit.Check(b, err)
	testkit.Check(b, client.Ping(ctx, nil))
	b.Cleanup(func() { _, _ = client.Disconnect(ctx), d.Close() })
	return client
}

// echo returns a connection to a server that replies to every 100 bytes with a reply
// of the given size.
func echo(b *testing.B, size int) net.Conn {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(b, err)
	go func() {
		c, err := l.Accept()
		request, reply := make([]byte, 100), make([]byte, size)
		for err == nil {
			if _, err = io.ReadFull(c, request); err == nil {
				_, err = c.Write(reply)
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	testkit.Check(b, err)
	b.Cleanup(func() { _, _ = c.Close(), l.Close() })
	return c
}

// BenchmarkStart starts embedded deployments. It does not measure closing them.
func BenchmarkStart(b *testing.B) {
	for i, who := range []string{"replicaset", "sharded", "load-balanced"} {
		measure(b, who, "servers", []int{1, 3, 12, 48}, func(b *testing.B, n int) {
			o := embedded.Options{Topology: []embedded.Topology{embedded.ReplicaSet, embedded.Sharded, embedded.LoadBalanced}[i],
				Members: n}
			if o.Topology != embedded.ReplicaSet {
				o.Members, o.Mongoses = 0, n
			}
			for b.Loop() {
				d, err := embedded.Start(context.Background(), o)
				testkit.Check(b, err)
				b.StopTimer()
				testkit.Check(b, d.Close())
				b.StartTimer()
			}
		})
	}
}
