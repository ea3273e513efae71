package schema

import (
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/source"
)

func TestNested(t *testing.T) {
	for _, tt := range []struct {
		reason, operation string
		want              []string // paths below the operation's arguments, with the messages
	}{
		{"nothing is nested", "{name: find, object: c, arguments: {filter: {}, foo: 1}}", nil},
		{"no arguments", "{name: runOnThread, object: testRunner}", nil},
		{"newer than the file declares", "{name: runOnThread, object: testRunner, arguments: {operation: {name: a, object: b, ignoreResultAndError: true}}}", nil},
		{"an operation's key", "{name: runOnThread, object: testRunner, arguments: {operation: {name: a, object: b, exepctError: {isError: true}}}}",
			[]string{`operation.exepctError: unknown key in an operation; did you mean "expectError"?`}},
		{"what an operation must have", "{name: withTransaction, object: s, arguments: {callback: [{name: a}]}}",
			[]string{`callback[0]: an operation must have the key "object"`}},
		{"of two levels", "{name: runOnThread, object: testRunner, arguments: {operation: {name: withTransaction, object: s, arguments: {callback: [1]}}}}",
			[]string{"operation.arguments.callback[0]: must be an object, is the integer 1"}},
		{"of an error", "{name: withTransaction, object: s, arguments: {callback: [{name: a, object: b, expectError: {isError: false}}]}}",
			[]string{"callback[0].expectError.isError: must be true, is false: an operation without expectError must succeed anyway"}},
		{"entities", "{name: createEntities, object: testRunner, arguments: {entities: [{thread: {id: 1}}]}}",
			[]string{"entities[0].thread.id: must be a string, is the integer 1 (in quotes it would be a string)"}},
		{"events", "{name: waitForEvent, object: testRunner, arguments: {event: {poolClearedEvent: {reason: x}}}}",
			[]string{`event.poolClearedEvent.reason: unknown key in a poolClearedEvent; "reason" is a key of a connectionCheckOutFailedEvent and of a connectionClosedEvent`}},
		{"events to observe that the schemas forgot, and official suites observe", "{name: createEntities, object: testRunner, arguments: {entities: [{client: {id: c, observeEvents: [serverHeartbeatStartedEvent, serverHeartbeatSucceededEvent, serverHeartbeatFailedEvent]}}]}}", nil},
		{"an event to observe that there is not", "{name: createEntities, object: testRunner, arguments: {entities: [{client: {id: c, observeEvents: [poolDrainedEvent]}}]}}",
			[]string{`entities[0].client.observeEvents[0]: unknown value "poolDrainedEvent"; did you mean "poolCreatedEvent"?`}},
		{"an event of an unknown type is left to the runner, which names it", "{name: waitForEvent, object: testRunner, arguments: {event: {poolEvent: {}}}}", nil},
	} {
		root, err := source.ParseYAML("f.yml", []byte("schemaVersion: '1.0'\ntests: [{description: t, operations: ["+tt.operation+"]}]"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range New().Nested(root) {
			got = append(got, p.Path+": "+p.Message)
		}
		for i := range tt.want {
			tt.want[i] = "tests[0].operations[0].arguments." + tt.want[i]
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
	if got := New().Nested(nil); got != nil {
		t.Errorf("nothing has %v", got)
	}
}

// No official suite that may run has anything wrong within its arguments.
func TestNestedOfficial(t *testing.T) {
	files, _, _ := rawFiles(t, officialSuites(t))
	set, checked := New(), 0
	for _, name := range sortedKeys(files) {
		root := valueOf(files[name])
		if version := root.Get("schemaVersion"); version == nil || version.Kind != source.String || len(set.Validate(version.String, root)) > 0 {
			continue
		}
		checked++
		for _, p := range set.Nested(root) {
			t.Errorf("%s: %v", name, p)
		}
	}
	if checked == 0 {
		t.Error("there was nothing to check")
	}
}
