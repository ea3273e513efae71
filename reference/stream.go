package reference

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/result"
)

// changeStream is a cursor that resumes after resumable errors (Change Streams, "Resume Process").
type changeStream struct {
	call *call // the call that opened it

	mu       sync.Mutex
	cursor   *cursor
	wire     int32
	token    bson.Raw // cached resume token
	at       *bson.Timestamp
	after    bson.Raw // startAfter, until the first document
	received bool
	closed   bool
	broken   bool // a timeout under timeoutMS: the next call resumes
}

func openStream(c *call) (any, *result.Error) {
	s := &changeStream{call: c, at: timestampOf(c.Given, "startAtOperationTime")}
	s.after, _ = c.Arg("startAfter").DocumentOK()
	s.token, _ = c.Arg("resumeAfter").DocumentOK()
	if s.token == nil {
		s.token = s.after
	}
	if err := c.checkMaxAwait(c.Number("maxAwaitTimeMS")); err != nil {
		return nil, err
	}
	if err := s.open(c.ctx, &c.trace, false); err != nil {
		return nil, err
	}
	return enginekit.Nothing{}, c.Save(c.ctx, entities.Cursor, s)
}

// stage returns the $changeStream stage.
func (s *changeStream) stage(resume bool) bson.D {
	c := s.call
	d := c.copyArgs(addIf(bson.D{}, c.Kind == entities.Client, "allChangesForCluster", true),
		"fullDocument", "fullDocumentBeforeChange", "showExpandedEvents")
	switch {
	case !resume:
		return c.copyArgs(d, "resumeAfter", "startAfter", "startAtOperationTime")
	case s.after != nil && !s.received && s.token != nil:
		return append(d, bson.E{Key: "startAfter", Value: s.token})
	case s.token != nil:
		return append(d, bson.E{Key: "resumeAfter", Value: s.token})
	}
	return addIf(d, s.at != nil, "startAtOperationTime", s.at)
}

// open sends the aggregate.
func (s *changeStream) open(ctx context.Context, tr *trace, resume bool) *result.Error {
	c := s.call
	pipeline := bson.A{document("$changeStream", s.stage(resume))}
	if c.Has("pipeline") {
		stages, err := c.Documents("pipeline")
		if err != nil {
			return err
		}
		for _, p := range stages {
			pipeline = append(pipeline, p)
		}
	}
	d := document("aggregate", c.aggregateValue(), "pipeline", pipeline, "cursor", c.batchOption())
	cmd := c.read(c.copyArgs(d, "collation", "comment"))
	cmd.pin = true
	if err := c.override(cmd); err != nil {
		return err
	}
	r, err := c.client.execute(ctx, cmd, tr)
	if err != nil {
		return err
	}
	k, err := c.openCursor(r, cursorOptions{batchSize: c.Number("batchSize"), maxTime: c.Number("maxAwaitTimeMS"),
		comment: c.Arg("comment"), tailable: true, await: true})
	if err != nil {
		return err
	}
	s.cursor, s.wire = k, r.wire
	if len(k.batch) == 0 && k.token == nil && s.token == nil && s.at == nil {
		s.at = timestampOf(r.doc, "operationTime")
	}
	if len(k.batch) == 0 && k.token != nil {
		s.token = k.token
	}
	return nil
}

func (s *changeStream) ns() namespace {
	return namespace{client: s.call.client, db: s.call.db, coll: s.call.coll}
}

// next implements iterator.
func (s *changeStream) next(ctx context.Context, wait bool, tr *trace) (bson.Raw, *result.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, argument("the change stream is closed")
	}
	ctx, cancel := s.call.client.driver.options.within(ctx, s.call.limit)
	defer cancel()
	if s.broken {
		if err := s.resume(ctx, tr); err != nil {
			return nil, err
		}
	}
	for {
		doc, err := s.cursor.next(ctx, false, tr)
		switch {
		case doc != nil:
			return s.deliver(ctx, doc, tr)
		case err == nil:
			if t := s.cursor.token; t != nil {
				s.token = t
			}
			if !wait || s.cursor.id == 0 {
				return nil, nil
			}
			continue
		case err.Timeout && s.call.timeout:
			s.broken = true
			return nil, err
		case !s.resumable(err):
			return nil, err
		case err.Client:
			s.cursor.id = 0 // the server may be down: killCursors would wait for it before the stream resumes elsewhere
		}
		if err := s.resume(ctx, tr); err != nil {
			return nil, err
		}
		if !wait && len(s.cursor.batch) == 0 {
			return nil, nil
		}
	}
}

// deliver caches the resume token of a document, and returns the document.
func (s *changeStream) deliver(ctx context.Context, doc bson.Raw, tr *trace) (bson.Raw, *result.Error) {
	token, ok := doc.Lookup("_id").DocumentOK()
	if !ok {
		s.closed = true
		s.cursor.close(ctx, nil, tr)
		return nil, &result.Error{Message: "cannot resume without a resume token: the document has no _id",
			Client: true, Kind: "change stream"}
	}
	s.received = true
	s.token = token
	if len(s.cursor.batch) == 0 && s.cursor.token != nil {
		s.token = s.cursor.token
	}
	return doc, nil
}

// resume reopens the stream at the resume token, in the session of its last command (Change Streams, "Resume Process").
func (s *changeStream) resume(ctx context.Context, tr *trace) *result.Error {
	if s.cursor.late {
		s.cursor.id = 0 // killCursors would wait for the reply
	}
	s.cursor.kill(ctx, nil, tr)
	err := s.open(ctx, tr, true)
	s.broken = err != nil && err.Timeout && s.call.timeout
	if err != nil && !s.broken {
		s.cursor.release()
	}
	return err
}

// resumable reports whether an error is resumable (Change Streams, "Resumable Error").
func (s *changeStream) resumable(err *result.Error) bool {
	switch {
	case err.Kind == "argument":
		return false
	case err.Client, err.Code == codes.CursorNotFound:
		return true
	case s.wire >= wire44:
		return err.HasLabel(codes.ResumableChangeStreamError)
	}
	switch err.Code {
	case codes.HostUnreachable, codes.HostNotFound, codes.NetworkTimeout, codes.ShutdownInProgress,
		codes.PrimarySteppedDown, codes.ExceededTimeLimit, codes.SocketException, codes.NotWritablePrimary,
		codes.InterruptedAtShutdown, codes.InterruptedDueToReplStateChange, codes.NotPrimaryNoSecondaryOk,
		codes.NotPrimaryOrSecondary,
		codes.StaleShardVersion, codes.StaleEpoch, codes.StaleConfig, codes.RetryChangeStream,
		codes.FailedToSatisfyReadPreference:
		return true
	}
	return false
}

// close implements iterator.
func (s *changeStream) close(ctx context.Context, limit *time.Duration, tr *trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.cursor.close(ctx, limit, tr)
}
