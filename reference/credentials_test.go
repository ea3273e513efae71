package reference

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Clients share an authenticator if all that it depends on is the same.
func TestAuthenticatorsAreShared(t *testing.T) {
	const first = "mongodb://u:p@localhost/?authMechanism=SCRAM-SHA-256"
	for _, row := range []struct {
		reason, first, second string
		shared                bool
	}{
		{"the same", first, first, true},
		{"what has nothing to do with it differs", first, first + "&maxPoolSize=3", true},
		{"another server may have another salt: it has a place of its own", first, "mongodb://u:p@localhost:27018/?authMechanism=SCRAM-SHA-256", true},
		{"another password", first, "mongodb://u:q@localhost/?authMechanism=SCRAM-SHA-256", false},
		{"another user", first, "mongodb://v:p@localhost/?authMechanism=SCRAM-SHA-256", false},
		{"another source", first, first + "&authSource=other", false},
		{"another mechanism", first, "mongodb://u:p@localhost/?authMechanism=SCRAM-SHA-1", false},
		{"a negotiated mechanism", "mongodb://u:p@localhost", "mongodb://u:p@localhost", true},
		{"more than a password", "mongodb://u:p@localhost/?authMechanism=PLAIN&authSource=$external",
			"mongodb://u:p@localhost/?authMechanism=PLAIN&authSource=$external", false},
	} {
		var all authenticators
		a, err := all.of(options.Client().ApplyURI(row.first))
		if err != nil || a == nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		b, err := all.of(options.Client().ApplyURI(row.second))
		if err != nil || b == nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		if shared := a == b; shared != row.shared {
			t.Errorf("%s: shared %t, want %t", row.reason, shared, row.shared)
		}
	}
	var all authenticators
	if a, err := all.of(options.Client().ApplyURI("mongodb://localhost")); a != nil || err != nil {
		t.Errorf("without a credential: %v, %v", a, err)
	}
	if _, err := all.of(options.Client().SetAuth(options.Credential{AuthMechanism: "NONE"})); err == nil {
		t.Error("an unknown mechanism is taken")
	}
}
