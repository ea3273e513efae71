package godriver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/version"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestVersion fails after an update of the driver. Read the new topology, and then change Tested.
func TestVersion(t *testing.T) { testkit.Equal(t, "the version of the driver", version.Driver, Tested) }

// A dialer records the uses of connections.
type dialer struct {
	mu   sync.Mutex
	uses map[Use]bool
}

func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.uses[DialedFor()] = true
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (d *dialer) seen() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.uses)
}

// TestDialedFor checks that the driver opens connections for three uses, and that each is recognized. A load balancer
// has neither a monitor nor measurements.
func TestDialedFor(t *testing.T) {
	for topology, want := range map[embedded.Topology]map[Use]bool{
		embedded.Standalone:   {RoundTrips: true, Monitor: true, Pool: true},
		embedded.LoadBalanced: {Pool: true},
	} {
		deployment, err := embedded.Start(t.Context(), embedded.Options{Topology: topology})
		testkit.Check(t, err)
		defer deployment.Close()
		d := &dialer{uses: map[Use]bool{}}
		client, err := mongo.Connect(options.Client().ApplyURI(deployment.URI()).SetDialer(d))
		testkit.Check(t, err)
		testkit.Check(t, client.Ping(t.Context(), nil))
		testkit.Until(t, "the uses "+fmt.Sprint(want), func() bool { return d.seen() == fmt.Sprint(want) })
		testkit.Check(t, client.Disconnect(t.Context()))
	}
}

// TestUnlabel checks that the topology adds no labels to an error, and that it keeps its text.
func TestUnlabel(t *testing.T) {
	var op *net.OpError
	err := error(Unlabel(net.ErrClosed))
	if !errors.As(err, &op) || op.Op != "remote error" || !errors.Is(err, net.ErrClosed) ||
		err.Error() != net.ErrClosed.Error() {
		t.Errorf("%#v", err)
	}
}
