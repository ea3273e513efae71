package reference

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// driverInfo reads NAME/VERSION/PLATFORM.
func driverInfo(text string) options.DriverInfo {
	parts := strings.Split(text, "/")
	return options.DriverInfo{Name: parts[0], Version: parts[1], Platform: parts[2]}
}

// TestMetadataIsAppended goes through the prose tests of the MongoDB Handshake
// specification ("Client Metadata Update Prose Tests"), and further.
func TestMetadataIsAppended(t *testing.T) {
	for _, row := range []struct{ reason, give, want string }{
		{"one", "library/1.2/P", "library/1.2/P"},
		{"two", "library/1.2/P framework/2.0/F", "library|framework/1.2|2.0/P|F"},
		{"a platform that is not set", "library/1.2/P framework/2.0/", "library|framework/1.2|2.0/P"},
		{"a version that is not set", "library/1.2/P framework//F", "library|framework/1.2/P|F"},
		{"a name alone", "library/1.2/P framework//", "library|framework/1.2/P"},
		{"nothing before", "framework// library/1.2/P", "framework|library/1.2/P"},
		{"the same again", "library/1.2/P library/1.2/P", "library/1.2/P"},
		{"the same with another between", "library/1.2/P framework/2.0/F library/1.2/P", "library|framework/1.2|2.0/P|F"},
		{"another name alone differs", "library/1.2/P framework/1.2/P", "library|framework/1.2|1.2/P|P"},
		{"another version alone differs", "library/1.2/P library/2.0/P", "library|library/1.2|2.0/P|P"},
		{"another platform alone differs", "library/1.2/P library/1.2/F", "library|library/1.2|1.2/P|F"},
		{"case counts", "a// A//", "a|A//"},
		{"what is not set is not the same as what is", "library/1.2/P library/1.2/", "library|library/1.2|1.2/P"},
		{"three", "a/1/ b// c/3/z", "a|b|c/1|3/z"},
		{"a name with the delimiter in it is refused", "a|b//", ""},
		{"such a version, too", "a/|/", ""},
		{"and such a platform", "a//b|", ""},
	} {
		var m metadata
		for _, text := range strings.Fields(row.give) {
			if err := m.append(driverInfo(text)); (err != nil) != (row.want == "") {
				t.Errorf("%s: %v", row.reason, err)
			}
		}
		got := m.current.Load()
		if row.want == "" && got != nil || row.want != "" && *got != driverInfo(row.want) {
			t.Errorf("%s: got %+v, want %s", row.reason, got, row.want)
		}
	}
}

// TestMetadataAtOnce is for the race detector, and loses no name.
func TestMetadataAtOnce(t *testing.T) {
	var m metadata
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "a", "b", "c"} {
		wait.Go(func() { testkit.Check(t, m.append(options.DriverInfo{Name: name})) })
	}
	wait.Wait()
	parts := strings.Split(m.current.Load().Name, delimiter)
	slices.Sort(parts)
	testkit.Equal(t, "the names", parts, []string{"a", "b", "c"})
}

// TestMetadataInHandshakes appends to a client without monitors, so that every
// connection is one of its pool.
func TestMetadataInHandshakes(t *testing.T) {
	s := script(t, "load-balanced", 1)
	b := open(t, s.uri("appname=app"), Options{dial: s.dial}, nil)
	// told is what the newest of so many connections said of the driver, and beside that.
	told := func(connections int) (driver [3]string, others string) {
		b.perform("ping")
		s.mu.Lock()
		defer s.mu.Unlock()
		testkit.Equal(t, "connections, and so hellos", len(s.first), connections)
		var all bson.D
		client := s.first[len(s.first)-1].Lookup("client").Document()
		testkit.Check(t, bson.Unmarshal(client, &all))
		all = slices.DeleteFunc(all, func(e bson.E) bool { return e.Key == "driver" || e.Key == "platform" })
		return [...]string{client.Lookup("driver", "name").StringValue(), client.Lookup("driver", "version").StringValue(),
			client.Lookup("platform").StringValue()}, raw(t, all).String()
	}
	first, others := told(1)
	for i, row := range []struct{ give, name, version, platform string }{
		{"library/1.2/P", "|library", "|1.2", "|P"},
		{"framework/2.0/F library/1.2/P", "|library|framework", "|1.2|2.0", "|P|F"}, // one of before is not told again
	} {
		for _, text := range strings.Fields(row.give) {
			info := driverInfo(text)
			b.must("client", "appendMetadata", d("driverInfoOptions", d("name", info.Name, "version", info.Version, "platform", info.Platform)))
		}
		told(i + 1) // there is neither another connection nor another hello
		s.on("ping", step{close: true})
		b.perform("ping")
		driver, rest := told(i + 2)
		testkit.Equal(t, row.give, driver, [...]string{first[0] + row.name, first[1] + row.version, first[2] + row.platform})
		testkit.Equal(t, "the rest", rest, others)
	}
}
