package driver

import (
	"errors"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// databaseRows are operations of databases.
func databaseRows() []row {
	listOptions := optionsFor[options.ListCollectionsOptions]()
	cursorCommand := "command commandName batchSize comment maxTimeMS"
	return []row{
		{operations.Database, "aggregate", "pipeline" + readConcerns + writeConcerns, optionsFor[options.AggregateOptions](), func(c *call) (any, error) {
			cursor, err := c.db().Aggregate(c.ctx, c.any("pipeline"), optionsOf[options.AggregateOptions](c))
			return all(c.ctx, cursor, err)
		}},
		{operations.Database, "createCollection", "collection viewOn pipeline timeseries" + writeConcerns, optionsFor[options.CreateCollectionOptions](), createCollection},
		{operations.Database, "dropCollection", "collection" + writeConcerns, optionsFor[options.DropCollectionOptions](), func(c *call) (any, error) {
			return enginekit.Nothing{}, c.db().Collection(c.Text("collection")).Drop(c.ctx, optionsOf[options.DropCollectionOptions](c))
		}},
		{operations.Database, "listCollections", "filter", listOptions, func(c *call) (any, error) {
			cursor, err := c.db().ListCollections(c.ctx, c.filter(), optionsOf[options.ListCollectionsOptions](c))
			return all(c.ctx, cursor, err)
		}},
		{operations.Database, "listCollectionNames", "filter", listOptions, func(c *call) (any, error) {
			return list(c.db().ListCollectionNames(c.ctx, c.filter(), optionsOf[options.ListCollectionsOptions](c)))
		}},
		{operations.Database, "runCommand", "command commandName", optionsFor[options.RunCmdOptions](), func(c *call) (any, error) {
			return c.db().RunCommand(c.ctx, c.document("command"), optionsOf[options.RunCmdOptions](c)).Raw()
		}},
		{operations.Database, "runCursorCommand", cursorCommand, optionsFor[options.RunCmdOptions](), func(c *call) (any, error) {
			cursor, err := commandCursor(c)
			return all(c.ctx, cursor, err)
		}},
		{operations.Database, "createCommandCursor", cursorCommand, optionsFor[options.RunCmdOptions](), func(c *call) (any, error) {
			cursor, err := commandCursor(c)
			return c.keep(cursor, err)
		}},
	}
}

// commandCursor runs a command that makes a cursor. The arguments beside the
// command are for its getMores.
func commandCursor(c *call) (*mongo.Cursor, error) {
	cursor, err := c.db().RunCommandCursor(c.ctx, c.document("command"), optionsOf[options.RunCmdOptions](c))
	if err != nil {
		return nil, err
	}
	if n, ok := whole[int32](c.Arg("batchSize")); ok {
		cursor.SetBatchSize(n)
	}
	if d, ok := milliseconds(c.Arg("maxTimeMS")); ok {
		cursor.SetMaxAwaitTime(d)
	}
	if c.Has("comment") {
		cursor.SetComment(c.any("comment"))
	}
	return cursor, nil
}

// createCollection makes a collection or a view, for which the driver has two
// calls.
func createCollection(c *call) (any, error) {
	name := c.Text("collection")
	var err error
	if c.Has("viewOn") {
		err = createView(c, name)
	} else {
		var o options.CreateCollectionOptions
		if err := fill(&o, c.row.name, c.rest()); err != nil {
			return nil, err
		}
		if v := c.Arg("timeseries"); v.Type != 0 {
			t, err := timeseriesOf(v)
			if err != nil {
				return nil, err
			}
			o.TimeSeriesOptions = &options.TimeSeriesOptionsBuilder{Opts: given(t).List()}
		}
		err = c.db().CreateCollection(c.ctx, name, given(o))
	}
	if err != nil {
		return nil, err
	}
	if c.op.SaveAs != "" {
		db := c.entity.(*database)
		if err := c.test.Entities.Put(c.op.SaveAs, &collection{Collection: db.Collection(name), db: db}); err != nil {
			return nil, argument("%v", err)
		}
	}
	return enginekit.Nothing{}, nil
}

func createView(c *call, name string) error {
	elements, err := c.rest().Elements()
	if err != nil {
		return err
	}
	for _, e := range elements {
		if e.Key() != "collation" {
			return unsupported("argument " + e.Key() + " of a view")
		}
	}
	pipeline := c.any("pipeline")
	if pipeline == nil {
		pipeline = bson.A{}
	}
	return c.db().CreateView(c.ctx, name, c.Text("viewOn"), pipeline, filled[options.CreateViewOptions]("view", c.rest()))
}

func timeseriesOf(v bson.RawValue) (options.TimeSeriesOptions, error) {
	var o options.TimeSeriesOptions
	doc, ok := v.DocumentOK()
	if !ok {
		return o, errors.New("timeseries is no document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return o, err
	}
	seconds := []string{"bucketMaxSpanSeconds", "bucketRoundingSeconds"}
	for _, e := range elements {
		if !slices.Contains(seconds, e.Key()) {
			continue
		}
		n, ok := enginekit.Integer(e.Value())
		if !ok {
			return o, argument("timeseries.%s is no whole number", e.Key())
		}
		d := time.Duration(n) * time.Second
		if e.Key() == seconds[0] {
			o.BucketMaxSpan = &d
		} else {
			o.BucketRounding = &d
		}
	}
	rest, _, err := without(doc, seconds...)
	if err != nil {
		return o, err
	}
	return o, fill(&o, "timeseries", rest)
}
