package proxy

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// hellos are the names of the handshake.
var hellos = map[string]bool{"hello": true, "isMaster": true, "ismaster": true}

// rewritten returns a reply to hello with the proxy's addresses instead of the servers' (Server Discovery and
// Monitoring, "ServerDescription"), and without compression.
func (p *Proxy) rewritten(hello bson.Raw) bson.Raw {
	elements, err := hello.Elements()
	if err != nil {
		return hello
	}
	out := make(bson.D, 0, len(elements))
	for _, e := range elements {
		var v any = e.Value()
		switch name := e.Key(); name {
		case "compression":
			continue
		case "hosts", "passives", "arbiters":
			hosts := []string{}
			for _, host := range value.Strings(e.Value()) {
				hosts = append(hosts, p.Address(host))
			}
			v = hosts
		case "me", "primary":
			if host, ok := e.Value().StringValueOK(); ok {
				v = p.Address(host)
			}
		}
		out = append(out, bson.E{Key: e.Key(), Value: v})
	}
	raw, err := bson.Marshal(out)
	if err != nil {
		return hello
	}
	return raw
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
