package proxy_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/proxy"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// While a server is down, the proxy refuses connections, too, and its fail points end, as
// the server's do. It accepts connections on the same port when the server runs again.
func TestServerIsDown(t *testing.T) {
	d := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet})
	host := d.Hosts()[0]
	p, err := proxy.Start(proxy.Options{}, host)
	testkit.Check(t, err)
	t.Cleanup(p.Close)
	address := p.Address(host)
	c := &client{t: t, address: address, pair: pair{hello: "hello"}}
	set := `{"configureFailPoint": "failCommand", "$db": "admin", "mode": "alwaysOn", "data": {"failCommands": ["ping"], "errorCode": 8}}`
	c.run(testkit.Extended[bson.Raw](t, set))
	ping := testkit.Extended[bson.Raw](t, `{"ping": 1}`)
	testkit.Equal(t, "a command before", gist(t, c.run(ping)), "8")
	testkit.Check(t, d.Kill(host))
	testkit.Until(t, "the proxy refuses connections", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	c.close()
	testkit.Check(t, d.Restart(host))
	testkit.Until(t, "the proxy accepts connections", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	testkit.Equal(t, "a command after", gist(t, c.run(ping)), "ok")
	c.close()
}
