package replay

import (
	"strings"
	"testing"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestAuthentication replays the recording of a server with access control. The client's nonce is the recorded one, but
// its proofs are computed again, because they depend on the server's nonce.
func TestAuthentication(t *testing.T) {
	report(t, "authentication", lines[step](t, "authentication.jsonl", 60), func(t *testing.T) *player {
		users := new(server.Users)
		testkit.Check(t, users.Add("admin", "u", "p"))
		prover := &prover{t: t, conversations: map[int]*scram.ClientConversation{}, challenge: map[int]string{}}
		p := newPlayer(t, server.Standalone, users, "localhost:27400")
		p.rewrite, p.payload = prover.rewrite, prover.payload
		return p
	})
}

// prover is the SCRAM client of each connection.
type prover struct {
	t             *testing.T
	conversations map[int]*scram.ClientConversation
	challenge     map[int]string
}

func (p *prover) rewrite(s step, doc bson.D) bson.D {
	for i, e := range doc {
		switch {
		case e.Key == "speculativeAuthenticate":
			if inner, ok := e.Value.(bson.D); ok {
				p.rewrite(s, inner)
			}
		case e.Key == "payload" && doc[0].Key == "saslStart":
			p.begin(s, doc)
		case e.Key == "payload" && doc[0].Key == "saslContinue":
			payload := string(e.Value.(bson.Binary).Data)
			if strings.HasPrefix(payload, "c=") && p.conversations[s.Connection] != nil {
				answer, err := p.conversations[s.Connection].Step(p.challenge[s.Connection])
				if err != nil {
					p.t.Fatalf("%v: %v", s, err)
				}
				doc[i].Value = bson.Binary{Data: []byte(answer)}
			}
		}
	}
	return doc
}

// begin creates the client that sends the recorded first message.
func (p *prover) begin(s step, doc bson.D) {
	sent := testkit.Raw(p.t, doc)
	_, payload, _ := sent.Lookup("payload").BinaryOK()
	first := string(payload)
	_, nonce, ok := strings.Cut(first, ",r=")
	if !ok {
		return
	}
	password := testkit.Either(s.Scenario == "wrong password", "wrong", "p")
	client, err := scram.SHA256.NewClient("u", password, "")
	if sent.Lookup("mechanism").StringValue() == "SCRAM-SHA-1" {
		// The MD5 digest of u:mongo:p (specification "Authentication", SCRAM-SHA-1).
		client, err = scram.SHA1.NewClientUnprepped("u", "d4198ee555320fa5c048da6d6da440d8", "")
	}
	testkit.Check(p.t, err)
	c := client.WithNonceGenerator(func() string { return nonce }).NewConversation()
	if got, err := c.Step(""); err != nil || got != first && s.Scenario != "unknown user" {
		p.t.Fatalf("%v: the first message is %q, not %q: %v", s, got, first, err)
	}
	p.conversations[s.Connection] = c
}

// payload compares the server's payload: the form of the challenge, or the server's signature.
func (p *prover) payload(s step, got, want []byte) bool {
	p.challenge[s.Connection] = string(got)
	g, w := string(got), string(want)
	switch {
	case strings.HasPrefix(w, "r="):
		gotFields, wantFields := strings.Split(g, ","), strings.Split(w, ",")
		return len(gotFields) == 3 && len(gotFields[0]) == len(wantFields[0]) &&
			gotFields[0][:20] == wantFields[0][:20] && len(gotFields[1]) == len(wantFields[1]) && gotFields[2] == wantFields[2]
	case strings.HasPrefix(w, "v="):
		_, err := p.conversations[s.Connection].Step(g)
		return err == nil && len(g) == len(w)
	}
	return g == w
}
