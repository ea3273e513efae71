package data

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// stream is the source of a change stream, which reads the oplog.
type stream struct {
	d    *Data
	wire int
	// The namespace to watch: coll is empty for a database, db for the whole cluster.
	db, coll string
	pipeline *pipeline.Pipeline
	// Options of $changeStream.
	fullDocument string
	before       string
	expanded     bool

	next    int64      // sequence number of the next oplog entry to read
	skip    bool       // of that entry, only the invalidate event is left
	token   token      // postBatchResumeToken
	pending []bson.Raw // events not returned yet
	tokens  []token    // of pending
	invalid bool       // the stream has been invalidated
}

const streamFields = " resumeAfter startAfter startAtOperationTime fullDocument fullDocumentBeforeChange allChangesForCluster showExpandedEvents showMigrationEvents showSystemEvents showRawUpdateDescription matchCollectionUUIDForUpdateLookup allowToRunOnConfigDB allowToRunOnSystemNS version ignoreRemovedShards supportedEvents "

// watch opens the change stream of an aggregation whose first stage is $changeStream with this argument.
func (g *aggregation) watch(arg any) (bson.D, error) {
	s := g.s
	doc, ok := arg.(bson.D)
	switch {
	case !s.d.logged():
		return nil, command.Errorf(40573, "The $changeStream stage is only supported on replica sets")
	case s.txn != nil:
		return nil, command.Errorf(command.CodeOperationNotSupportedInTransaction, "$changeStream cannot be used in a transaction")
	case !ok:
		return nil, command.Errorf(50808, "$changeStream stage expects a document as argument.")
	}
	a := &args{of: "$changeStream", doc: doc, FirstError: new(command.FirstError)}
	a.only(streamFields)
	a.Note(tooNew(s.req, a.of, doc))
	st := &stream{d: s.d, wire: wire(s.req), db: s.req.DB, coll: g.name, fullDocument: a.enum("fullDocument", "default", "updateLookup", "whenAvailable", "required"),
		before: a.enum("fullDocumentBeforeChange", "off", "whenAvailable", "required"), expanded: a.flag("showExpandedEvents")}
	switch all := a.flag("allChangesForCluster"); {
	case all && (g.name != "" || st.db != "admin"):
		a.Fail(command.CodeIllegalOperation, "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name; found %s", g.ns)
	case all:
		st.db = ""
	case internalDB(st.db):
		a.Fail(command.CodeInvalidNamespace, "$changeStream may not be opened on the internal %s database", st.db)
	case strings.HasPrefix(g.name, "system."):
		a.Fail(command.CodeInvalidNamespace, "$changeStream may not be opened on the internal %s collection", g.ns)
	}
	list := g.list[1:]
	for _, item := range list {
		name := item.(bson.D)[0].Key
		a.Refuse(name != "$match" && !pipeline.Transforms(name), command.CodeIllegalOperation, "%s is not permitted in a $changeStream pipeline", name)
	}
	var err error
	st.pipeline, err = pipeline.Compile(list, g.opts)
	a.Note(err)
	s.d.reading(func() {
		c := s.d.collection(s.req.DB, g.name)
		a.Refuse(c != nil && c.isView(), command.CodeOptionNotSupportedOnView, "$changeStream is not supported on views.")
	})
	if a.Err == nil {
		a.Note(st.start(a))
	}
	if a.Err != nil {
		return nil, a.Err
	}
	return s.open(g.ns, st, cursorOptions{size: g.batchSize, await: true})
}

// enum returns a string that is empty or one of these values.
func (a *args) enum(key string, values ...string) string {
	v := a.str(key)
	a.Refuse(v != "" && !slices.Contains(values, v), command.CodeBadValue, "Enumeration value '%s' for field '%s.%s' is not a valid value.", v, a.of, key)
	return v
}

// internalDB reports whether a database is reserved for the server.
func internalDB(name string) bool { return name == "admin" || name == "config" || name == "local" }

// start finds the position in the oplog at which a stream begins.
func (st *stream) start(o *args) error {
	d, log := st.d, &st.d.oplog
	d.mu.Lock()
	defer d.mu.Unlock()
	options := slices.DeleteFunc([]string{"resumeAfter", "startAfter", "startAtOperationTime"}, func(k string) bool { return !o.has(k) })
	switch {
	case len(options) > 1:
		return command.Errorf(40674, "Only one type of resume option is allowed, but multiple were found.")
	case len(options) == 0:
		st.next, st.token = log.next(), token{ts: d.clock.time(), highWater: true}
		return nil
	}
	option, text := options[0], ""
	ts := field[bson.Timestamp](o, "startAtOperationTime", "timestamp")
	if option != "startAtOperationTime" {
		var err error
		text, ts, err = parseToken(o.any(option))
		o.Note(err)
	}
	st.token = token{ts: ts, highWater: true}
	switch {
	case o.Err != nil:
		return o.Err
	case ts.Compare(log.from) < 0:
		return historyLost()
	case option == "startAtOperationTime":
		st.next = log.seek(ts)
		return nil
	case st.token.String() == text:
		st.next = log.seek(bson.Timestamp{T: ts.T, I: ts.I + 1})
		return nil
	}
	return st.resume(option, text)
}

func historyLost() error {
	return command.Errorf(command.CodeChangeStreamHistoryLost, "Resume of change stream was not possible, as the resume point may no longer be in the oplog.")
}

// resume finds the position after the event with the resume token in an option. The caller has set the time.
func (st *stream) resume(option, text string) error {
	ts := st.token.ts
	for seq := st.d.oplog.seek(ts); ; seq++ {
		e, ok := st.d.oplog.at(seq)
		if !ok || e.ts != ts {
			return command.Errorf(command.CodeChangeStreamFatalError, "cannot resume stream; the resume token was not found. %s", value.Text(bson.D{{Key: "_data", Value: text}}))
		}
		event := e.token(false)
		switch {
		case event.String() == text && st.invalidates(e): // the invalidate event is next
			st.token, st.next, st.skip = event, seq, true
			return nil
		case event.String() == text:
			st.token, st.next = event, seq+1
			return nil
		case e.token(true).String() != text:
			continue
		case option == "resumeAfter":
			return command.Errorf(command.CodeInvalidResumeToken, "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
		}
		st.token, st.next = e.token(true), seq+1
		return nil
	}
}

// seek returns the sequence number of the first entry at a time or later.
func (o *oplog) seek(ts bson.Timestamp) int64 {
	i, _ := slices.BinarySearchFunc(o.entries, ts, func(e entry, ts bson.Timestamp) int { return e.ts.Compare(ts) })
	return o.first + int64(i)
}

func (st *stream) extra() bson.D {
	return bson.D{{Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: st.token.String()}}}}
}

func (st *stream) batch(n int64) ([]bson.Raw, bool, error) {
	if err := st.fill(); err != nil {
		return nil, true, err
	}
	docs, rest := take(st.pending, n)
	if n := len(docs); n > 0 {
		if last := st.tokens[n-1]; len(rest) > 0 || last.ts.Compare(st.token.ts) >= 0 {
			st.token = last
		}
		st.tokens, st.pending = st.tokens[n:], rest
	}
	return docs, st.invalid && len(rest) == 0, nil
}

// fill reads new oplog entries.
func (st *stream) fill() error {
	if st.invalid || len(st.pending) > 0 {
		return nil
	}
	var entries []entry
	var now bson.Timestamp
	lost := false
	st.d.reading(func() {
		if lost = st.next < st.d.oplog.first; !lost {
			entries = slices.Clip(st.d.oplog.entries[st.next-st.d.oplog.first:])
			now = st.d.clock.time()
		}
	})
	if lost {
		return historyLost()
	}
	for i := range entries {
		e := &entries[i]
		st.next++
		if !st.skip {
			if err := st.add(e, false); err != nil {
				return err
			}
		}
		st.skip = false
		if st.invalidates(e) {
			st.invalid = true
			return st.add(e, true)
		}
	}
	// All entries up to now have been read, so the stream can resume here.
	if now.Compare(st.token.ts) > 0 {
		st.token = token{ts: now, highWater: true}
	}
	return nil
}

// watches reports whether the namespace of an entry is watched.
func (st *stream) watches(e *entry) bool {
	if internalDB(e.db) || strings.HasPrefix(e.coll, "system.") {
		return false
	}
	watched := func(db, coll string) bool {
		return st.db == "" || db == st.db && (st.coll == "" || st.coll == coll)
	}
	toDB, toColl, _ := strings.Cut(e.to, ".")
	return watched(e.db, e.coll) || e.kind == opRename && watched(toDB, toColl)
}

// invalidates reports whether an entry invalidates the stream.
func (st *stream) invalidates(e *entry) bool {
	ends := (e.kind == opDrop || e.kind == opRename) && st.coll != "" || e.kind == opDropDatabase && st.db != ""
	return ends && st.watches(e)
}

// expandedKinds are the events of showExpandedEvents.
var expandedKinds = []opKind{opCreate, opCreateIndexes, opDropIndexes, opModify, opShard}

// add applies the pipeline to the event of an entry and appends the result.
func (st *stream) add(e *entry, invalidate bool) error {
	if !st.watches(e) || !st.expanded && slices.Contains(expandedKinds, e.kind) ||
		e.kind == opDropDatabase && !invalidate && st.coll != "" {
		return nil
	}
	t := e.token(invalidate)
	doc, err := st.event(e, t, invalidate)
	if err != nil {
		return err
	}
	out, err := st.pipeline.Apply(nil, []bson.D{doc})
	if err != nil {
		return err
	}
	id := value.Get(doc, "_id")
	for _, doc := range out {
		if newID := value.Get(doc, "_id"); !value.Equal(newID, id) {
			return nonResumable(command.CodeChangeStreamFatalError, "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that point. Only transformations that retain the unmodified _id field are allowed. Expected: %s but found: %s", value.Text(bson.D{{Key: "_id", Value: id}}), value.Text(bson.D{{Key: "_id", Value: newID}}))
		}
		raw := value.Encode(doc)
		if len(raw) > maxEvent {
			return nonResumable(command.CodeBSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", len(raw), len(raw), maxEvent)
		}
		st.pending, st.tokens = append(st.pending, raw), append(st.tokens, t)
	}
	return nil
}

func nonResumable(code int32, format string, args ...any) error {
	e := command.Errorf(code, format, args...)
	e.Labels = []string{"NonResumableChangeStreamError"}
	return e
}

const maxEvent = maxDocument + 16*1024

// event returns the change event of an entry.
func (st *stream) event(e *entry, t token, invalidate bool) (bson.D, error) {
	out := bson.D{
		{Key: "_id", Value: bson.D{{Key: "_data", Value: t.String()}}},
		{Key: "operationType", Value: string(e.kind)},
		{Key: "clusterTime", Value: e.ts},
	}
	add := func(when bool, key string, v any) { out = value.AddIf(out, when, key, v) }
	add(st.expanded && len(e.uuid.Data) > 0 && !invalidate, "collectionUUID", e.uuid)
	add(st.wire >= wire60, "wallTime", e.wall)
	r := cmp.Or(e.new, e.old)
	if e.lsid != nil && r != nil {
		id, _ := value.FromRaw(e.lsid.Lookup("id"))
		add(true, "txnNumber", e.txnNumber)
		add(true, "lsid", bson.D{{Key: "id", Value: id}, {Key: "uid", Value: command.UserDigest("")}})
	}
	if invalidate {
		out[1].Value = "invalidate"
		return out, nil
	}
	switch e.kind {
	case opInsert, opReplace:
		add(true, "fullDocument", e.new.doc)
	case opUpdate:
		full, err := st.updated(e)
		if err != nil {
			return nil, err
		}
		out = append(out, full...)
	}
	add(true, "ns", nsDocument(e.db, e.coll))
	detail := e.detail
	if e.kind == opRename {
		db, coll, _ := strings.Cut(e.to, ".")
		detail = bson.D{{Key: "to", Value: nsDocument(db, coll)}}
		out = append(out, detail...)
		if e.dropped != nil {
			detail = append(detail, bson.E{Key: "dropTarget", Value: *e.dropped})
		}
	}
	if r != nil {
		add(true, "documentKey", bson.D{{Key: "_id", Value: value.Get(r.doc, "_id")}})
	}
	if e.kind == opUpdate {
		add(true, "updateDescription", difference(e.old.doc, e.new.doc, st.expanded))
	}
	add(e.kind == opCreate && st.wire >= wire81, "nsType", e.nsType)
	add(detail != nil && st.expanded, "operationDescription", detail)
	if e.old == nil {
		return out, nil
	}
	pre, err := image("fullDocumentBeforeChange", st.before, e.preimages, e.old.doc,
		"pre-image for all update, delete and replace events, but the pre-image")
	return append(out, pre...), err
}

func nsDocument(db, coll string) bson.D {
	return value.AddIf(bson.D{{Key: "db", Value: db}}, coll != "", "coll", coll)
}

// updated returns the field fullDocument of an update event, if the stream requests it.
func (st *stream) updated(e *entry) (bson.D, error) {
	if st.fullDocument != "updateLookup" {
		return image("fullDocument", st.fullDocument, e.preimages, e.new.doc, "post-image for all update events, but the post-image")
	}
	var current any
	st.d.reading(func() {
		if c := st.d.collection(e.db, e.coll); c != nil {
			if r := c.find(e.new.rid); r != nil {
				current = r.doc
			}
		}
	})
	return bson.D{{Key: "fullDocument", Value: current}}, nil
}

// image returns a field with a pre-image or post-image according to mode. kept reports whether the collection has them.
func image(field, mode string, kept bool, doc bson.D, what string) (bson.D, error) {
	switch {
	case mode != "whenAvailable" && mode != "required":
		return nil, nil
	case kept:
		return bson.D{{Key: field, Value: doc}}, nil
	case mode == "required":
		return nil, command.Errorf(command.CodeNoMatchingDocument, "Change stream was configured to require a %s was not found for event", what)
	}
	return bson.D{{Key: field, Value: nil}}, nil
}

// difference returns the updateDescription of an update. With expanded, it has the paths whose text is ambiguous
// because a field name is a number or contains a dot.
func difference(old, updated bson.D, expanded bool) bson.D {
	d := differ{updated: bson.D{}, removed: bson.A{}, truncated: bson.A{}, ambiguous: bson.D{}}
	d.documents(path{}, old, updated)
	out := bson.D{{Key: "updatedFields", Value: d.updated}, {Key: "removedFields", Value: d.removed}, {Key: "truncatedArrays", Value: d.truncated}}
	return value.AddIf(out, expanded, "disambiguatedPaths", append(d.ambiguous, d.ambiguousRemoved...))
}

type differ struct {
	updated, ambiguous, ambiguousRemoved bson.D
	removed, truncated                   bson.A
}

// path is a path into a document.
type path struct {
	parts bson.A // field names are strings, array indexes int32
	text  string // the parts, separated by dots
}

func (p path) with(part any) path {
	text := fmt.Sprint(part)
	if len(p.parts) > 0 {
		text = p.text + "." + text
	}
	return path{append(slices.Clip(p.parts), part), text}
}

// ambiguous returns a field of disambiguatedPaths with the parts of the path if its text is ambiguous.
func (p path) ambiguous() bson.D {
	for i, part := range p.parts {
		name, ok := part.(string)
		if ok && (strings.Contains(name, ".") || i > 0 && name != "" && strings.Trim(name, "0123456789") == "") {
			return bson.D{{Key: p.text, Value: p.parts}}
		}
	}
	return nil
}

func (d *differ) documents(p path, old, updated bson.D) {
	for _, e := range old {
		if _, ok := value.Field(updated, e.Key); !ok {
			removed := p.with(e.Key)
			d.removed = append(d.removed, removed.text)
			d.ambiguousRemoved = append(d.ambiguousRemoved, removed.ambiguous()...)
		}
	}
	for _, e := range updated {
		d.values(p.with(e.Key), value.Lookup(old, e.Key), e.Value)
	}
}

func (d *differ) values(p path, old, updated any) {
	if value.TypeName(old) == value.TypeName(updated) && value.Equal(old, updated) {
		return
	}
	switch x := updated.(type) {
	case bson.D:
		if y, ok := old.(bson.D); ok && len(y) > 0 {
			d.documents(p, y, x)
			return
		}
	case bson.A:
		if y, ok := old.(bson.A); ok && len(y) > 0 && len(x) > 0 {
			for i := range x {
				d.values(p.with(int32(i)), value.Element(y, i), x[i])
			}
			if len(x) < len(y) {
				size := int32(len(x))
				d.truncated = append(d.truncated, bson.D{{Key: "field", Value: p.text}, {Key: "newSize", Value: size}})
			}
			return
		}
	}
	d.updated = append(d.updated, bson.E{Key: p.text, Value: updated})
	d.ambiguous = append(d.ambiguous, p.ambiguous()...)
}
