package data

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

const (
	maxDocument = 16 * 1024 * 1024
	firstBatch  = 101
	awaitTime   = time.Second
	// cursorTimeout is how long a cursor may be idle.
	cursorTimeout = 10 * time.Minute
)

// cursor is an open cursor. It belongs to the server that opened it.
type cursor struct {
	id      int64
	ns      string
	server  string
	session string
	txn     int64 // -1 outside of transactions
	source  source
	// style is how this server orders the fields of replies.
	idFirst bool
	// killed is closed when the cursor is killed, so that a waiting getMore
	// ends.
	killed chan struct{}
	busy   bool // guarded by Data.cursorMu
	await  bool
	lasts  bool      // however long it is idle
	used   time.Time // when it was made, or given back
}

// source gives a cursor its documents.
type source interface {
	// batch gives up to n documents (-1: as many as fit) of those that are
	// there now, and whether the cursor has ended. It fails for good.
	batch(n int64) (docs []bson.Raw, done bool, err error)
	// extra are further fields of the cursor in a reply.
	extra() bson.D
}

// results is a source of documents that were found when the cursor was opened.
type results struct {
	docs []bson.Raw
	// known reports that the end is known when the last document is given; a
	// server that scans learns it only by looking for one more.
	known bool
	at    bson.D
}

func (l *results) batch(n int64) ([]bson.Raw, bool, error) {
	out, rest := take(l.docs, n)
	l.docs = rest
	if len(rest) > 0 {
		return out, false, nil
	}
	return out, n < 0 || l.known || int64(len(out)) < n, nil
}

func (l *results) extra() bson.D { return l.at }

// take cuts a batch of up to n documents, or as many as a message holds.
func take(docs []bson.Raw, n int64) (batch, rest []bson.Raw) {
	size := 0
	for i, d := range docs {
		size += len(d)
		if n >= 0 && int64(i) >= n || i > 0 && size > maxDocument {
			return docs[:i:i], docs[i:]
		}
	}
	return docs, nil
}

// cursorOptions say how a cursor is opened.
type cursorOptions struct {
	size    int64 // of the first batch
	single  bool  // there is no other
	await   bool  // for data that comes later
	idFirst bool  // how the server orders the fields of the reply
}

// open gives the first batch of a source and keeps the cursor if more is to
// come.
func (s *scope) open(ns string, src source, o cursorOptions) (bson.D, error) {
	docs, done, err := src.batch(o.size)
	if err != nil {
		return nil, err
	}
	c := &cursor{ns: ns, source: src, killed: make(chan struct{}), txn: -1, await: o.await}
	extra := src.extra()
	if !done && !o.single {
		s.keepCursor(c)
	}
	return cursorReply(c, "firstBatch", docs, extra, o.idFirst), nil
}

func (s *scope) keepCursor(c *cursor) {
	c.server, c.idFirst, c.lasts = address(s.req), mongos(s.req), s.lasting
	if s.req.LSID != nil {
		c.session = sessionKey(s.req.LSID)
	}
	if s.txn != nil {
		c.txn = s.txn.number
	}
	s.d.cursorMu.Lock()
	defer s.d.cursorMu.Unlock()
	for c.id == 0 || s.d.cursors[c.id] != nil {
		c.id = rand.Int64() // positive, as those of servers
	}
	c.used = time.Now()
	s.d.forgetCursors(c.used)
	s.d.cursors[c.id] = c
}

// forgetCursors drops those that have been idle for too long, now and then. The caller holds
// cursorMu.
func (d *Data) forgetCursors(now time.Time) {
	if now.Sub(d.cursorsChecked) < cursorTimeout/10 {
		return
	}
	d.cursorsChecked = now
	d.killCursors(func(c *cursor) bool { return !c.busy && !c.lasts && now.Sub(c.used) > cursorTimeout })
}

// killCursors closes the cursors chosen. The caller holds cursorMu.
func (d *Data) killCursors(chosen func(*cursor) bool) {
	for id, c := range d.cursors {
		if chosen(c) {
			delete(d.cursors, id)
			close(c.killed)
		}
	}
}

// cursorReply is the reply with a batch. The fields stand in the order in
// which servers write them.
func cursorReply(c *cursor, key string, docs []bson.Raw, extra bson.D, idFirst bool) bson.D {
	if docs == nil {
		docs = []bson.Raw{}
	}
	head, batch := bson.D{{Key: "id", Value: c.id}, {Key: "ns", Value: c.ns}}, bson.D{{Key: key, Value: docs}}
	if len(extra) > 0 && extra[0].Key == "postBatchResumeToken" {
		batch, extra = append(batch, extra...), nil
	}
	if !idFirst {
		head, batch = batch, head
	}
	return bson.D{{Key: "cursor", Value: slices.Concat(head, batch, extra)}}
}

// list is the reply of a command whose result is all there.
func (s *scope) list(ns string, docs []bson.Raw, size int64) bson.D {
	reply, _ := s.open(ns, &results{docs: docs, known: true}, cursorOptions{size: size, idFirst: true}) // results do not fail
	return reply
}

func (s *scope) notFound(id int64, ns string) error {
	if mongos(s.req) {
		return command.Errorf(command.CodeCursorNotFound, "Cursor not found (namespace: '%s', id: %d).", ns, id)
	}
	return command.Errorf(command.CodeCursorNotFound, "cursor id %d not found", id)
}

// getMore gives the next batch of a cursor.
func getMore(s *scope, a *args) action {
	id, ok := a.any("getMore").(int64)
	a.refuse(!ok, command.CodeTypeMismatch, "BSON field 'getMore.getMore' is the wrong type '%s', expected type 'long'", value.TypeName(a.any("getMore")))
	coll, size, maxTime, d := a.str("collection"), a.number("batchSize", -1), a.number("maxTimeMS", 0), s.d
	a.only(" collection batchSize term lastKnownCommittedOpTime includeQueryStatsMetrics ")
	a.need("collection")
	a.refuse(a.has("batchSize") && size < 0, command.CodeValueTooSmall, "BSON field 'batchSize' value must be >= 0, actual value '%d'", size)
	if size == 0 {
		size = -1
	}
	return func() (bson.D, error) {
		c, err := d.checkOut(s, id, s.req.DB+"."+coll, maxTime > 0)
		if err != nil {
			return nil, err
		}
		ended := true // unless batch says otherwise
		defer func() { d.checkIn(c, ended) }()
		_, s.req.Watches = c.source.(*stream)
		if err := struck(s.req); err != nil {
			return nil, err
		}
		docs, done, err := d.next(s.req.Context, c, size, maxTime)
		if ended = done; err != nil {
			return nil, err
		}
		reply := &cursor{id: c.id, ns: c.ns}
		if done {
			reply.id = 0
		}
		return cursorReply(reply, "nextBatch", docs, c.source.extra(), c.idFirst), nil
	}
}

// checkOut takes a cursor for a getMore, if the request may have it.
func (d *Data) checkOut(s *scope, id int64, ns string, limited bool) (*cursor, error) {
	d.cursorMu.Lock()
	defer d.cursorMu.Unlock()
	c := d.cursors[id]
	switch {
	case c == nil || c.server != address(s.req):
		return nil, s.notFound(id, ns)
	case c.ns != ns:
		return nil, command.Errorf(command.CodeUnauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	case c.busy:
		return nil, command.Errorf(command.CodeCursorInUse, "cursor id %d is already in use", id)
	case c.session != "" && s.req.LSID == nil:
		return nil, command.Errorf(50738, "Cannot run getMore on cursor %d, which was created in session %s, without an lsid", id, sessionText(c.session))
	case c.session != "" && sessionKey(s.req.LSID) != c.session:
		return nil, command.Errorf(50739, "Cannot run getMore on cursor %d, which was created in session %s, in session %s", id, sessionText(c.session), sessionText(sessionKey(s.req.LSID)))
	case c.session == "" && s.req.LSID != nil:
		return nil, command.Errorf(50737, "Cannot run getMore on cursor %d, which was not created in a session, in session %s", id, sessionText(sessionKey(s.req.LSID)))
	case c.txn >= 0 && s.txn == nil:
		return nil, command.Errorf(50740, "Cannot run getMore on cursor %d, which was created in transaction %d, without a txnNumber", id, c.txn)
	case limited && !c.await && wire(s.req) < wire44: // later versions accept it
		return nil, command.Errorf(command.CodeBadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	c.busy = true
	return c, nil
}

// checkIn gives a cursor back, or closes one that has ended.
func (d *Data) checkIn(c *cursor, ended bool) {
	d.cursorMu.Lock()
	defer d.cursorMu.Unlock()
	c.busy, c.used = false, time.Now()
	if ended {
		delete(d.cursors, c.id)
	}
}

// struck evaluates the fail point that strikes once the cursor of a getMore is
// found. The cursor ends with the error.
func struck(req *command.Request) error {
	f, hit := req.Strikes(failpoint.FailGetMoreAfterCursorCheckout)
	if !hit {
		return nil
	}
	return command.Errorf(f.Code, "Hit the '%s' failpoint", failpoint.FailGetMoreAfterCursorCheckout)
}

// next gives the next batch; where the cursor awaits data and no data is there,
// it waits for some, up to the time that the client allows.
func (d *Data) next(ctx context.Context, c *cursor, size, maxTime int64) ([]bson.Raw, bool, error) {
	wait := awaitTime
	if maxTime > 0 {
		wait = time.Duration(maxTime) * time.Millisecond
	}
	timeout := time.After(wait)
	for {
		var changed <-chan struct{}
		d.reading(func() { changed = d.changed })
		docs, done, err := c.source.batch(size)
		if err != nil || done || len(docs) > 0 || !c.await {
			return docs, done, err
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, false, nil
		case <-c.killed:
			return nil, true, command.Errorf(command.CodeCursorKilled, "operation was interrupted because a client disconnected or the cursor was killed")
		case <-ctx.Done():
			return nil, false, interrupted()
		}
	}
}

// killCursors closes cursors.
func killCursors(s *scope, a *args) action {
	a.only(" cursors ")
	ids, ns, d := a.array("cursors"), s.req.DB+"."+a.name(), s.d
	a.need("cursors")
	for _, v := range ids {
		if _, ok := v.(int64); !ok {
			a.failf(command.CodeTypeMismatch, "BSON field 'killCursors.cursors' is the wrong type '%s', expected type 'long'", value.TypeName(v))
		}
	}
	return func() (bson.D, error) {
		killed, missing := bson.A{}, bson.A{}
		d.cursorMu.Lock()
		defer d.cursorMu.Unlock()
		for _, v := range ids {
			c := d.cursors[v.(int64)]
			if c == nil || c.server != address(s.req) || c.ns != ns {
				missing = append(missing, v)
				continue
			}
			delete(d.cursors, c.id)
			close(c.killed)
			killed = append(killed, v)
		}
		return bson.D{
			{Key: "cursorsKilled", Value: killed}, {Key: "cursorsNotFound", Value: missing},
			{Key: "cursorsAlive", Value: bson.A{}}, {Key: "cursorsUnknown", Value: bson.A{}},
		}, nil
	}
}
