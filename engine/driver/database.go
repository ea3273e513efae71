package driver

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
)

func databaseRows() []row {
	const on = entities.Database
	const cursorCommand = "commandName batchSize comment maxTimeMS"
	return []row{
		calling(on, "aggregate", readConcerns+writeConcerns, "pipeline", (*call).db, (*mongo.Database).Aggregate),
		calling(on, "createChangeStream", readConcerns, "pipeline", (*call).db, (*mongo.Database).Watch),
		calling(on, "listCollectionNames", "", "filter", (*call).db, (*mongo.Database).ListCollectionNames),
		calling(on, "listCollections", "", "filter", (*call).db, (*mongo.Database).ListCollections),
		with(on, "runCommand", "commandName", func(c *call, o *filled[options.RunCmdOptions]) (any, error) {
			return c.result(c.db().RunCommand(c.ctx, c.any("command"), o), nil)
		}),
		with(on, "runCursorCommand", cursorCommand, commandCursor),
		with(on, "createCommandCursor", cursorCommand, commandCursor),
		with(on, "createCollection", "viewOn pipeline timeseries"+writeConcerns, createCollection),
		with(on, "dropCollection", writeConcerns,
			func(c *call, o *filled[options.DropCollectionOptions]) (any, error) {
				return enginekit.Nothing{}, c.db().Collection(c.Text("collection")).Drop(c.ctx, o)
			}),
	}
}

// commandCursor runs a command that returns a cursor. The other arguments are for its getMore commands.
func commandCursor(c *call, o *filled[options.RunCmdOptions]) (any, error) {
	cursor, err := c.db().RunCommandCursor(c.ctx, c.any("command"), o)
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
	return c.result(cursor, nil)
}

// createCollection creates a collection or a view.
func createCollection(c *call, o *filled[options.CreateCollectionOptions]) (any, error) {
	name := c.Text("collection")
	var err error
	if c.Has("viewOn") {
		err = createView(c, name)
	} else {
		if c.Has("timeseries") {
			var t options.TimeSeriesOptions
			if err := fillDocument(&t, "timeseries", c.Arg("timeseries")); err != nil {
				return nil, err
			}
			for _, seconds := range []*time.Duration{t.BucketMaxSpan, t.BucketRounding} {
				if seconds != nil {
					*seconds *= 1000 // fill reads durations as milliseconds
				}
			}
			o.options.TimeSeriesOptions = &options.TimeSeriesOptionsBuilder{Opts: given(t).List()}
		}
		err = c.db().CreateCollection(c.ctx, name, o)
	}
	if err != nil {
		return nil, err
	}
	if c.Operation.SaveAs != "" {
		db := c.Entity.(*database)
		return c.save(entities.Collection, &collection{Collection: db.Collection(name), db: db})
	}
	return enginekit.Nothing{}, nil
}

func createView(c *call, name string) error {
	var o options.CreateViewOptions
	if err := fill(&o, "view", c.rest()); err != nil {
		return err
	}
	pipeline := c.any("pipeline")
	if pipeline == nil {
		pipeline = bson.A{}
	}
	return c.db().CreateView(c.ctx, name, c.Text("viewOn"), pipeline, given(o))
}
