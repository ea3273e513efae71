package server

import (
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/wire"
)

// helloNames are the commands that an OP_QUERY may hold whatever the version.
var helloNames = map[string]bool{"hello": true, "isMaster": true, "ismaster": true}

// query answers an OP_QUERY: a command on $cmd, or a find.
func (k *conn) query(h wire.Header, body []byte, reply writer) error {
	q, err := wire.ParseQuery(body)
	if err != nil {
		return err
	}
	db, collection, _ := strings.Cut(q.Collection, ".")
	doc := q.Query
	if inner, ok := doc.Lookup("$query").DocumentOK(); ok {
		doc = inner
	}
	find := collection != "$cmd"
	if find {
		doc = findCommand(q, collection, doc)
	}
	name := firstKey(doc)
	if !k.server.cluster.Profile.has(legacyOpcodes) && !helloNames[name] {
		refused := k.compose(k.server.view(), nil, nil, command.Errorf(command.CodeUnsupportedOpQueryCommand,
			"Unsupported OP_QUERY command: %s. The client driver may require an upgrade. "+
				"For more details see https://dochub.mongodb.org/core/legacy-opcode-removal", name))
		return reply.reply(h.RequestID, wire.ReplyAwaitCapable, 0, refused)
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
	if !find {
		return reply.reply(h.RequestID, wire.ReplyAwaitCapable, 0, answer)
	}
	return found(h, answer, reply)
}

// findCommand is a legacy query as the find command that it means. Projection,
// skip and sort are left out.
func findCommand(q wire.Query, collection string, filter bson.Raw) bson.Raw {
	find := bson.D{{Key: "find", Value: collection}, {Key: "filter", Value: filter}}
	switch n := int64(q.Return); {
	case n == 1 || n < 0:
		find = append(find, bson.E{Key: "limit", Value: max(n, -n)}, bson.E{Key: "singleBatch", Value: true})
	case n > 1:
		find = append(find, bson.E{Key: "batchSize", Value: n})
	}
	return marshal(find)
}

// found sends the answer to a find as an OP_REPLY with its documents.
func found(h wire.Header, answer bson.Raw, reply writer) error {
	cursor, ok := answer.Lookup("cursor").DocumentOK()
	if !ok {
		message, _ := answer.Lookup("errmsg").StringValueOK()
		code, _ := answer.Lookup("code").AsInt64OK()
		return reply.reply(h.RequestID, wire.ReplyQueryFailure|wire.ReplyAwaitCapable, 0,
			marshal(bson.D{{Key: "$err", Value: message}, {Key: "code", Value: int32(code)}}))
	}
	id, _ := cursor.Lookup("id").AsInt64OK()
	var docs []bson.Raw
	if batch, ok := cursor.Lookup("firstBatch").ArrayOK(); ok {
		values, err := batch.Values()
		if err != nil {
			return err
		}
		for _, v := range values {
			docs = append(docs, v.Document())
		}
	}
	return reply.reply(h.RequestID, wire.ReplyAwaitCapable, id, docs...)
}

// insert carries out an OP_INSERT, which has no answer.
func (k *conn) insert(body []byte) error {
	if !k.server.cluster.Profile.has(legacyOpcodes) {
		return command.ErrClose
	}
	in, err := wire.ParseInsert(body)
	var refused *command.Error
	if errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		return err
	}
	db, collection, _ := strings.Cut(in.Collection, ".")
	doc := marshal(bson.D{
		{Key: "insert", Value: collection},
		{Key: "ordered", Value: !in.ContinueOnError},
		{Key: "documents", Value: in.Documents},
		{Key: "$db", Value: db},
	})
	x, err := k.begin(doc, false)
	if err != nil {
		return err
	}
	if _, err = x.answer(); errors.Is(err, command.ErrClose) {
		return err
	}
	return nil
}
