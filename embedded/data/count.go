package data

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// count implements count.
func count(s *scope, a *args) action {
	a.readConcern(s.d)
	a.only(" query limit skip hint collation fields ")
	name, skip, limit := a.name(), a.number("skip", 0), a.number("limit", 0)
	opts := query.Options{Collation: a.collation(), Scripts: s.scripts()}
	a.document("query")
	a.checkName(s.req.DB, name)
	a.Refuse(skip < 0, command.CodeBadValue, "Skip value is negative in the count query")
	f := a.filter("query", opts)
	return func() (bson.D, error) {
		docs, err := s.documents(name, a.any("hint"), nil, f)
		if err != nil {
			return nil, err
		}
		n := max(int64(len(docs))-skip, 0)
		if limit != 0 {
			n = min(n, max(limit, -limit))
		}
		reply := bson.D{{Key: "n", Value: value.Int(n)}}
		if mongos(s.req) {
			reply = append(bson.D{{Key: "shards", Value: bson.D{{Key: s.d.opts.ShardName, Value: value.Int(n)}}}}, reply...)
		}
		return reply, nil
	}
}

// distinct implements distinct.
func distinct(s *scope, a *args) action {
	level, at := a.readConcern(s.d)
	a.only(" key query collation hint ")
	name, key := a.name(), a.str("key")
	opts := query.Options{Collation: a.collation(), Scripts: s.scripts()}
	a.document("query")
	a.need("key")
	a.checkName(s.req.DB, name)
	f := a.filter("query", opts)
	return func() (bson.D, error) {
		now := s.d.clock.time()
		docs, err := s.documents(name, a.any("hint"), at, f)
		if err != nil {
			return nil, err
		}
		values, seen := bson.A{}, map[string]bool{}
		for _, doc := range docs {
			query.Leaves(doc, strings.Split(key, "."), func(v any) {
				switch v.(type) {
				case bson.Undefined, value.Missing:
					return
				}
				if k := value.Key(opts.Collation.Fold(v)); !seen[k] {
					seen[k] = true
					values = append(values, v)
				}
			})
		}
		out := bson.D{{Key: "values", Value: values}}
		if level == "snapshot" && s.txn == nil {
			out = append(out, snapshotTime(at, now)...)
		}
		return out, nil
	}
}
