package server

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/wire"
)

// helloNames are the commands that an OP_QUERY may hold whatever the version.
var helloNames = map[string]bool{"hello": true, "isMaster": true, "ismaster": true}

// query answers an OP_QUERY with a command. Finds are older than any driver that
// connects to the versions here.
func (k *conn) query(h wire.Header, body []byte, reply writer) error {
	q, err := wire.ParseQuery(body)
	if err != nil {
		return err
	}
	db, isCommand := strings.CutSuffix(q.Collection, ".$cmd")
	if !isCommand {
		return command.ErrClose
	}
	doc := q.Query
	if inner, ok := doc.Lookup("$query").DocumentOK(); ok {
		doc = inner
	}
	if name := firstKey(doc); !k.server.cluster.Profile.has(legacyOpcodes) && !helloNames[name] {
		return reply.reply(h.RequestID, k.compose(k.server.view(), nil, nil, command.Errorf(command.CodeUnsupportedOpQueryCommand,
			"Unsupported OP_QUERY command: %s. The client driver may require an upgrade. "+
				"For more details see https://dochub.mongodb.org/core/legacy-opcode-removal", name)))
	}
	extra := bson.D{{Key: "$db", Value: db}}
	if _, err := doc.LookupErr("$readPreference"); err != nil && q.Flags&wire.QuerySecondaryOk != 0 {
		extra = append(extra, bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}})
	}
	doc, err = with(doc, extra)
	if err != nil {
		return err
	}
	x, err := k.begin(doc, false)
	if err != nil {
		return err
	}
	answer, err := x.answer()
	if err != nil {
		return err
	}
	return reply.reply(h.RequestID, answer)
}
