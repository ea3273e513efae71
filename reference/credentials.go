package reference

import (
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	mongo "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// authenticators are kept for all clients of an engine, so that each does not
// salt the same password again: 15,000 rounds by default (Authentication,
// "SCRAM-SHA-256": clients may cache what they derive). Nothing else of a
// conversation outlives it. The zero value is ready, and may be used
// concurrently.
type authenticators struct {
	mu   sync.Mutex
	kept map[credential]mongo.Authenticator
}

// credential is all that an authenticator by password depends on.
type credential struct{ mechanism, source, user, password string }

// of gives the authenticator of a client, nil if it has no credential. Those
// of mechanisms that know more than a password are the client's own.
func (a *authenticators) of(o *options.ClientOptions) (mongo.Authenticator, error) {
	c := o.Auth
	if c == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := credential{c.AuthMechanism, c.AuthSource, c.Username, c.Password}
	if known := a.kept[key]; known != nil {
		return known, nil
	}
	made, err := auth.CreateAuthenticator(c.AuthMechanism, topology.ConvertCreds(c), o.HTTPClient)
	if err == nil && slices.Contains([]string{"", auth.SCRAMSHA1, auth.SCRAMSHA256}, c.AuthMechanism) {
		if a.kept == nil {
			a.kept = make(map[credential]mongo.Authenticator)
		}
		a.kept[key] = made
	}
	return made, err
}
