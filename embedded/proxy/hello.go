package proxy

import (
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// rewritten returns a reply to hello with the proxy's addresses instead of the servers' (Server Discovery and
// Monitoring, "ServerDescription"), and without compression. Monitors get most of a run's replies, so the rest is not
// decoded.
func (p *Proxy) rewritten(hello bson.Raw) bson.Raw {
	elements, _ := hello.Elements() // a validated document cannot cause an error
	start, out := bsoncore.AppendDocumentStart(make([]byte, 0, len(hello)))
	for _, e := range elements {
		v := e.Value()
		switch key := e.Key(); {
		case key == "compression":
		case v.Type == bson.TypeArray && slices.Contains([]string{"hosts", "passives", "arbiters"}, key):
			var list int32
			list, out = bsoncore.AppendArrayElementStart(out, key)
			for i, host := range value.Elements(v) {
				out = bsoncore.AppendValueElement(out, strconv.Itoa(i), p.named(host))
			}
			out, _ = bsoncore.AppendArrayEnd(out, list)
		case key == "me" || key == "primary":
			out = bsoncore.AppendValueElement(out, key, p.named(v))
		default:
			out = append(out, e...)
		}
	}
	out, _ = bsoncore.AppendDocumentEnd(out, start)
	return bson.Raw(out)
}

// named returns the address of the proxy in front of a server. A name that is not a string stays as it is.
func (p *Proxy) named(name bson.RawValue) bsoncore.Value {
	if server, ok := name.StringValueOK(); ok {
		return bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, p.Address(server))}
	}
	return bsoncore.Value{Type: bsoncore.Type(name.Type), Data: name.Value}
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
