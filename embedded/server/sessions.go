package server

import (
	"crypto/rand"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// startSession makes a session id.
func (x *exchange) startSession() (bson.D, error) {
	return bson.D{
		{Key: "id", Value: bson.D{{Key: "id", Value: newUUID()}}},
		{Key: "timeoutMinutes", Value: int32(logicalSessionTimeout)},
	}, nil
}

// lsids are the session ids that are the value of the command.
func (x *exchange) lsids() ([]bson.Raw, error) {
	value := x.request.Body.Index(0).Value()
	list, ok := value.ArrayOK()
	if !ok {
		return nil, refuse(codeTypeMismatch, "BSON field '%sFromClient.%s' is the wrong type '%s', expected type 'array'",
			x.row.Name, x.row.Name, failpoint.TypeName(value.Type))
	}
	values, err := list.Values()
	if err != nil {
		return nil, err
	}
	out := make([]bson.Raw, 0, len(values))
	for _, v := range values {
		doc, ok := v.DocumentOK()
		if !ok {
			return nil, refuse(codeTypeMismatch, "BSON field '%sFromClient.%s' is the wrong type '%s', expected type 'object'",
				x.row.Name, x.row.Name, failpoint.TypeName(v.Type))
		}
		out = append(out, doc)
	}
	return out, nil
}

// sessionList only checks its argument: our sessions have no time-out.
func (x *exchange) sessionList() (bson.D, error) {
	_, err := x.lsids()
	return nil, err
}

func (x *exchange) endSessions() (bson.D, error) {
	ids, err := x.lsids()
	if err == nil && len(ids) > 0 && x.conn.server.cluster.Backend != nil {
		x.conn.server.cluster.Backend.EndSessions(ids)
	}
	return nil, err
}

// killSessions serves killSessions too, whose empty list means all sessions of
// the user, and the others, whose users and patterns we do not tell apart.
func (x *exchange) killSessions() (bson.D, error) {
	ids, err := x.lsids()
	if err != nil {
		return nil, err
	}
	if x.row.Name != "killSessions" || len(ids) == 0 {
		ids = nil
	}
	if x.conn.server.cluster.Backend != nil {
		x.conn.server.cluster.Backend.KillSessions(ids)
	}
	return nil, nil
}

// newUUID is a random UUID, of version 4.
func newUUID() bson.Binary {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return bson.Binary{Subtype: bson.TypeBinaryUUID, Data: id}
}
