package proxy

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// rewritten returns a reply to hello with the proxy's addresses instead of the servers' (Server Discovery and
// Monitoring, "ServerDescription"), and without compression.
func (p *Proxy) rewritten(hello bson.Raw) bson.Raw {
	out := value.Delete(value.Must(hello), "compression")
	for i, e := range out {
		switch e.Key {
		case "hosts", "passives", "arbiters":
			hosts, _ := e.Value.(bson.A)
			for j, host := range hosts {
				hosts[j] = p.named(host)
			}
		case "me", "primary":
			out[i].Value = p.named(e.Value)
		}
	}
	return value.Encode(out)
}

// named returns the address of the proxy in front of a server. A name that is not a string stays as it is.
func (p *Proxy) named(name any) any {
	if server, ok := name.(string); ok {
		return p.Address(server)
	}
	return name
}

// hello records what a reply to hello says, and rewrites it.
func (k *conn) hello(doc bson.Raw) bson.Raw {
	k.front.learn(doc)
	number, _ := doc.Lookup("connectionId").AsInt64OK()
	service, balanced := doc.Lookup("serviceId").ObjectIDOK()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.number = number
	if balanced && k.failPoints == nil {
		k.failPoints = k.front.proxy.registry(service.Hex())
	}
	return k.front.proxy.rewritten(doc)
}
