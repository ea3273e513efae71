package reference

import (
	"testing"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestDropDatabase(t *testing.T) {
	s := script(t, "replicaset", 1)
	b := open(t, s, Options{}, bson.D{{Key: "w", Value: 2}, {Key: "readPreference", Value: "secondary"}})
	b.entity("session", "session", bson.D{{Key: "client", Value: "client"}})
	of := func(more ...bson.E) bson.D { return append(bson.D{{Key: "database", Value: "other"}}, more...) }
	in := bson.E{Key: "session", Value: "session"}
	for _, row := range []struct {
		reason string
		args   bson.D
		reply  step
		code   int32
		kind   string // of another error
		w      int64
		causal bool
	}{
		{"the client's write concern", of(), step{}, 0, "", 2, false},
		{"its own", of(bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}), step{}, 0, "", 1, false},
		{"in a session", of(in), step{}, 0, "", 2, false},
		{"after what the session knows", of(in), step{}, 0, "", 2, true},
		{"an error of the server", of(), fails(20), 20, "", 2, false},
		{"one that would be retried of a write that can", of(), fails(91, "RetryableWriteError"), 91, "", 2, false},
		{"a network error", of(), closes, 0, "network", 2, false},
		{"a write concern error", of(), step{reply: bson.D{{Key: "ok", Value: 1.0}, {Key: "writeConcernError",
			Value: bson.D{{Key: "code", Value: int32(64)}, {Key: "errmsg", Value: "late"}}}}}, 64, "", 2, false},
	} {
		before := len(s.commands("dropDatabase"))
		s.on("dropDatabase", row.reply)
		out := b.do("client", "dropDatabase", row.args)
		switch {
		case row.code == 0 && row.kind == "":
			if out.Err != nil || out.Value.Type != 0 {
				t.Errorf("%s: %+v, %v", row.reason, out.Err, out.Value)
			}
		case out.Err == nil || row.kind != "" && out.Err.Kind != row.kind:
			t.Errorf("%s: %+v", row.reason, out.Err)
		case row.code != 0 && !hasCode(out.Err.Code, out.Err.WriteConcernErrors, row.code):
			t.Errorf("%s: %+v, want code %d", row.reason, out.Err, row.code)
		}
		sent := s.commands("dropDatabase")[before:]
		if len(sent) != 1 {
			t.Fatalf("%s: sent %d times", row.reason, len(sent))
		}
		cmd := sent[0]
		if db := cmd.Lookup("$db").StringValue(); db != "other" {
			t.Errorf("%s: in database %s", row.reason, db)
		}
		if w, _ := enginekit.Integer(cmd.Lookup("writeConcern", "w")); w != row.w {
			t.Errorf("%s: write concern %v, want w %d", row.reason, cmd.Lookup("writeConcern"), row.w)
		}
		for field, want := range map[string]bool{"lsid": true, "txnNumber": false, "readConcern": row.causal, "$readPreference": false} {
			if _, err := cmd.LookupErr(field); (err == nil) != want {
				t.Errorf("%s: %s in %v, want it: %v", row.reason, field, cmd, want)
			}
		}
		if _, err := cmd.LookupErr("readConcern", "afterClusterTime"); (err == nil) != row.causal {
			t.Errorf("%s: %v", row.reason, cmd)
		}
	}
}

func hasCode(code int32, concerns []bson.Raw, want int32) bool {
	for _, c := range concerns {
		if n, _ := enginekit.Integer(c.Lookup("code")); n == int64(want) {
			return true
		}
	}
	return code == want
}
