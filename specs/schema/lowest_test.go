package schema

import (
	"slices"
	"strings"
	"testing"
)

// TestLowest shows what makes a file need a version, and where.
func TestLowest(t *testing.T) {
	const before = "description: a\nschemaVersion: '1.28'\n"
	const after = "tests: [{description: t, operations: []}]\n"
	one := func(op string) string {
		return before + "tests:\n- description: t\n  operations:\n  - " + op + "\n"
	}
	tests := []struct {
		reason, yaml string
		want         string // version, and the leading demand
	}{
		{"a file of the first version", before + after, "1.0"},
		{"a key of the whole file", before + after + "_yamlAnchors: {}\n",
			"1.1 for 4:1 _yamlAnchors: \"_yamlAnchors\""},
		{"an enumerated value", before + after + "runOnRequirements: [{topologies: [load-balanced]}]\n",
			"1.3 for 4:35 runOnRequirements[0].topologies[0]: \"load-balanced\""},
		{"an alternative form of a value", before + after + "runOnRequirements: [{csfle: {minLibmongocryptVersion: '1.2'}}]\n",
			"1.25 for 4:29 runOnRequirements[0].csfle: an object here"},
		{"a boolean csfle needs less", before + after + "runOnRequirements: [{csfle: true}]\n",
			"1.8 for 4:22 runOnRequirements[0].csfle: \"csfle\""},
		{"a labelled key", before + after + "createEntities: [{client: {id: c, autoEncryptOpts: {keyVaultNamespace: n, kmsProviders: {'aws:a': {}}}}}]\n",
			"1.23 for 4:35 createEntities[0].client.autoEncryptOpts: \"autoEncryptOpts\""},
		{"the most demanding of several leads", before + after + "runOnRequirements: [{auth: true, serverless: forbid, authMechanism: x}]\n",
			"1.19 for 4:54 runOnRequirements[0].authMechanism: \"authMechanism\""},
		{"an operation, which the schema cannot see", one("{name: runOnThread, object: testRunner}"),
			"1.10 for 6:12 tests[0].operations[0].name: operation runOnThread"},
		{"an operation of the same name on another object", one("{name: wait, object: collection0}"), "1.0"},
		{"an operation in an operation", one("{name: withTransaction, object: s, arguments: {callback: [{name: find, object: c, ignoreResultAndError: true}]}}"),
			"1.3 for 6:87 tests[0].operations[0].arguments.callback[0].ignoreResultAndError: \"ignoreResultAndError\""},
		{"an operation named in an operation", one("{name: loop, object: testRunner, arguments: {operations: [{name: createFindCursor, object: c}]}}"),
			"1.3 for 6:70 tests[0].operations[0].arguments.operations[0].name: operation createFindCursor"},
		{"an operator, which the schema cannot see", one("{name: find, object: c, expectResult: [{a: {$$lte: 3}}]}"),
			"1.9 for 6:49 tests[0].operations[0].expectResult[0].a.$$lte: operator $$lte"},
		{"an entity made by an operation", one("{name: createEntities, object: testRunner, arguments: {entities: [{client: {id: c, awaitMinPoolSizeMS: 1}}]}}"),
			"1.26 for 6:88 tests[0].operations[0].arguments.entities[0].client.awaitMinPoolSizeMS: \"awaitMinPoolSizeMS\""},
		{"an event in the arguments of an operation", one("{name: waitForEvent, object: testRunner, arguments: {event: {poolClearedEvent: {interruptInUseConnections: true}}}}"),
			"1.11 for 6:85 tests[0].operations[0].arguments.event.poolClearedEvent.interruptInUseConnections: \"interruptInUseConnections\""},
		{"a placeholder in uriOptions", before + after + "createEntities: [{client: {id: c, uriOptions: {authMechanism: {$$placeholder: 1}}}}]\n",
			"1.19 for 4:64 createEntities[0].client.uriOptions.authMechanism: $$placeholder in uriOptions"},
		{"what looks like an operator in initial data is data", before + after + "initialData: [{collectionName: c, databaseName: d, documents: [{$$lte: 1}]}]\n", "1.0"},
		{"a file that is valid at no version", before + "tests: []\n", "none"},
	}
	set := New()
	for _, test := range tests {
		version, demands, ok := set.LowestFor(parse(t, test.yaml))
		got := version
		if !ok {
			got = "none"
		}
		if len(demands) > 0 {
			d := demands[0]
			got += " for " + strings.TrimPrefix(d.Position.String(), "suite.yml:") + " " + d.Path + ": " + d.What
			if d.Version != version {
				t.Errorf("%s: the leading demand is for %s", test.reason, d.Version)
			}
		}
		if got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.reason, got, test.want)
		}
		if v, k := set.Lowest(parse(t, test.yaml)); v != version || k != ok {
			t.Errorf("%s: Lowest gives %q, %v", test.reason, v, k)
		}
	}
	if _, _, ok := set.LowestFor(nil); ok {
		t.Error("nothing has a lowest version")
	}
}

// TestLowestOfficial holds LowestFor against a naive twin, which tries every
// official schema: the twin's version is the highest demand that the schemas
// know of.
func TestLowestOfficial(t *testing.T) {
	o := loadOfficial(t)
	set := New()
	files, _, _ := rawFiles(t, officialSuites(t))
	checked, tooLow, tooHigh := 0, 0, 0
	for _, name := range sortedKeys(files) {
		root := valueOf(files[name])
		twin := slices.IndexFunc(allMinors(), func(minor int) bool { return o.valid(t, minor, files[name]) })
		version, demands, ok := set.LowestFor(root)
		if ok != (twin >= 0) {
			t.Errorf("%s: found %v, the twin %d", name, ok, twin)
		}
		if !ok {
			continue
		}
		lowest, _ := minorOf(version)
		if lowest < twin || lowest > twin && !unseenDemand(demands, lowest) {
			t.Errorf("%s: found %s, the twin 1.%d: %v", name, version, twin, demands)
		}
		declared, err := minorOf(root.Get("schemaVersion").String)
		if err != nil {
			continue
		}
		checked++
		if declared < lowest {
			tooLow++ // found by nobody, as no schema sees it
		} else if declared > lowest {
			tooHigh++
		}
	}
	t.Logf("%d suites checked: %d declare less than they need, %d declare more", checked, tooLow, tooHigh)
}

// unseenDemand reports whether something that no schema sees demands a
// version.
func unseenDemand(demands []Demand, minor int) bool {
	return slices.ContainsFunc(demands, func(d Demand) bool {
		return d.minor == minor && (strings.HasPrefix(d.What, "operat") || strings.HasPrefix(d.What, "$$") || strings.Contains(d.Path, ".arguments."))
	})
}
