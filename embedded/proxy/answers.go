package proxy

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// answers are the commands that the proxy answers itself. A nil reply passes the command on.
var answers = map[string]func(*conn, *pending) bson.Raw{
	"configureFailPoint": (*conn).configureFailPoint,
	"getParameter":       (*conn).getParameter,
}

// registryOf returns the registry of a fail point, nil if the service is not known.
func (k *conn) registryOf(name string) *failpoint.Registry {
	if name == failpoint.FailCommandSequence {
		return k.front.proxy.sequence
	}
	return k.registry()
}

func (k *conn) configureFailPoint(x *pending) bson.Raw {
	name, _ := x.Body.Index(0).Value().StringValueOK()
	registry := k.registryOf(name)
	switch {
	case x.db != "admin":
		return k.failure(x, fault.Errorf(fault.Unauthorized,
			"configureFailPoint may only be run against the admin database."))
	case registry == nil:
		return k.failure(x, fault.Errorf(fault.FailPointSetFailed, "the connection has not said hello to a service"))
	}
	lacking := value.Has(x.Body, "data", lackingField)
	if k.front.proxy.Inside && k.front.passes(name, lacking, x.Body) {
		return nil
	} else if lacking {
		return k.failure(x, fault.Errorf(fault.FailPointSetFailed,
			"%s takes effect inside a server: the proxy cannot execute it", lackingField))
	}
	count, err := registry.Configure(x.Body)
	if err != nil {
		return k.failure(x, err)
	}
	return k.success(value.Doc("count", count))
}

// passes reports whether the server gets a fail point: one that takes effect inside it, until that is turned off.
func (f *front) passes(name string, lacking bool, command bson.Raw) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	had := f.inside[name]
	f.inside[name] = value.TextAt(command, "mode") != "off" && (had || lacking)
	return had || lacking || !slices.Contains(FailPoints(), name)
}

func (k *conn) success(fields bson.D) bson.Raw {
	_, times := k.front.times(k.ctx)
	return value.Encode(slices.Concat(fields, value.Doc("ok", 1.0), times))
}

const parameterPrefix = "failpoint."

// getParameter reports fail points. It passes on a command that also asks for something else.
func (k *conn) getParameter(x *pending) bson.Raw {
	elements, _ := x.Body.Elements()
	var found bson.D
	for _, e := range elements[min(1, len(elements)):] {
		name, is := strings.CutPrefix(e.Key(), parameterPrefix)
		switch registry := k.registryOf(name); {
		case is && registry != nil && slices.Contains(FailPoints(), name):
			found = value.Append(found, e.Key(), registry.State(name))
		case is, commands.Generic(e.Key()):
		default:
			return nil
		}
	}
	if len(found) == 0 {
		return nil
	}
	return k.success(found)
}

// kills are the commands that end the commands of sessions, and where an element of their list has the session's id.
// All users have the same sessions.
var kills = map[string][]string{"killSessions": {"id"}, "killAllSessions": {},
	"killAllSessionsByPattern": {"lsid", "id"}}

// kill ends the blocked commands of the sessions that a command has killed: on its server, or after a mongos on all.
func (k *conn) kill(x *pending) {
	var ids []bson.RawValue
	for _, doc := range value.Documents(x.Body.Index(0).Value()) {
		if id := doc.Lookup(kills[x.name]...); !id.IsZero() {
			ids = append(ids, id)
		}
	}
	var server any = k.front
	if k.front.current().mongos {
		server = nil
	}
	k.front.proxy.held.Kill(server, ids)
}
