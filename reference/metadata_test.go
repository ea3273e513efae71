package reference

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var (
	library   = options.DriverInfo{Name: "library", Version: "1.2", Platform: "Library Platform"}
	framework = options.DriverInfo{Name: "framework", Version: "2.0", Platform: "Framework Platform"}
)

// TestMetadataIsAppended goes through the prose tests of the MongoDB Handshake
// specification ("Client Metadata Update Prose Tests"), and further.
func TestMetadataIsAppended(t *testing.T) {
	info := func(name, version, platform string) options.DriverInfo {
		return options.DriverInfo{Name: name, Version: version, Platform: platform}
	}
	for _, row := range []struct {
		reason string
		give   []options.DriverInfo
		want   options.DriverInfo
	}{
		{"one", []options.DriverInfo{library}, library},
		{"two", []options.DriverInfo{library, framework}, info("library|framework", "1.2|2.0", "Library Platform|Framework Platform")},
		{"a platform that is not set", []options.DriverInfo{library, info("framework", "2.0", "")}, info("library|framework", "1.2|2.0", "Library Platform")},
		{"a version that is not set", []options.DriverInfo{library, info("framework", "", "Framework Platform")}, info("library|framework", "1.2", "Library Platform|Framework Platform")},
		{"a name alone", []options.DriverInfo{library, info("framework", "", "")}, info("library|framework", "1.2", "Library Platform")},
		{"nothing before", []options.DriverInfo{info("framework", "", ""), library}, info("framework|library", "1.2", "Library Platform")},
		{"the same again", []options.DriverInfo{library, library}, library},
		{"the same with another between", []options.DriverInfo{library, framework, library}, info("library|framework", "1.2|2.0", "Library Platform|Framework Platform")},
		{"another name alone differs", []options.DriverInfo{library, info("framework", "1.2", "Library Platform")}, info("library|framework", "1.2|1.2", "Library Platform|Library Platform")},
		{"another version alone differs", []options.DriverInfo{library, info("library", "2.0", "Library Platform")}, info("library|library", "1.2|2.0", "Library Platform|Library Platform")},
		{"another platform alone differs", []options.DriverInfo{library, info("library", "1.2", "Framework Platform")}, info("library|library", "1.2|1.2", "Library Platform|Framework Platform")},
		{"case counts", []options.DriverInfo{info("a", "", ""), info("A", "", "")}, info("a|A", "", "")},
		{"what is not set is not the same as what is", []options.DriverInfo{library, info("library", "1.2", "")}, info("library|library", "1.2|1.2", "Library Platform")},
		{"three", []options.DriverInfo{info("a", "1", ""), info("b", "", ""), info("c", "3", "z")}, info("a|b|c", "1|3", "z")},
	} {
		var m metadata
		for _, i := range row.give {
			if err := m.append(i); err != nil {
				t.Fatalf("%s: %v", row.reason, err)
			}
		}
		if got := *m.current.Load(); got != row.want {
			t.Errorf("%s: got %+v, want %+v", row.reason, got, row.want)
		}
	}
	for _, bad := range []options.DriverInfo{info("a|b", "", ""), info("a", "|", ""), info("a", "", "b|")} {
		var m metadata
		if err := m.append(bad); err == nil || m.current.Load() != nil {
			t.Errorf("%+v: %v; %+v", bad, err, m.current.Load())
		}
	}
}

// TestMetadataAtOnce is for the race detector.
func TestMetadataAtOnce(t *testing.T) {
	var m metadata
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "a", "b", "c"} {
		wait.Go(func() {
			if err := m.append(options.DriverInfo{Name: name}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	parts := strings.Split(m.current.Load().Name, delimiter)
	slices.Sort(parts)
	if strings.Join(parts, "") != "abc" {
		t.Errorf("got %s", m.current.Load().Name)
	}
}

// TestMetadataInHandshakes appends to a client without monitors, so that every
// connection is one of its pool.
func TestMetadataInHandshakes(t *testing.T) {
	s := script(t, "load-balanced", 1)
	b := open(t, s, Options{}, bson.D{{Key: "appname", Value: "app"}})
	ping := func() error {
		out := b.do("database", "runCommand", bson.D{{Key: "commandName", Value: "ping"}, {Key: "command", Value: bson.D{{Key: "ping", Value: 1}}}})
		if out.Err != nil {
			return out.Err
		}
		return nil
	}
	// told is what the newest of so many connections said of the client.
	told := func(connections int) (client bson.D) {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.first) != connections || s.conns != int64(connections) {
			t.Fatalf("there were %d connections and %d hellos, want %d", len(s.first), s.conns, connections)
		}
		if err := bson.Unmarshal(s.first[connections-1].Lookup("client").Document(), &client); err != nil {
			t.Fatal(err)
		}
		return client
	}
	set := func(info options.DriverInfo) {
		t.Helper()
		if out := b.do("client", "appendMetadata", bson.D{{Key: "driverInfoOptions", Value: bson.D{{Key: "name", Value: info.Name},
			{Key: "version", Value: info.Version}, {Key: "platform", Value: info.Platform}}}}); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	again := func() { // on a new connection
		t.Helper()
		s.on("ping", closes)
		if err := ping(); err == nil {
			t.Fatal("the connection was not closed")
		}
		if err := ping(); err != nil {
			t.Fatal(err)
		}
	}
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	before := told(1)
	set(library)
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	told(1) // neither another connection nor another hello
	again()
	second := told(2)
	if got, want := second, withInfo(before, library); !same(t, got, want) {
		t.Errorf("the next connection told %v, want %v", got, want)
	}
	set(framework)
	set(library)
	again()
	if got, want := told(3), withInfo(second, framework); !same(t, got, want) {
		t.Errorf("after another one, and one of before: %v, want %v", got, want)
	}
}

// withInfo is what a client tells of itself and of a library more.
func withInfo(client bson.D, info options.DriverInfo) bson.D {
	out := slices.Clone(client)
	for i, e := range out {
		switch e.Key {
		case "driver":
			d := slices.Clone(e.Value.(bson.D))
			for j, f := range d {
				d[j].Value = joinMetadata(f.Value.(string), map[string]string{"name": info.Name, "version": info.Version}[f.Key])
			}
			out[i].Value = d
		case "platform":
			out[i].Value = joinMetadata(e.Value.(string), info.Platform)
		}
	}
	return out
}

func same(t *testing.T, a, b bson.D) bool { return slices.Equal(raw(t, a), raw(t, b)) }

func TestMetadataRefused(t *testing.T) {
	b := open(t, script(t, "single", 1), Options{}, nil)
	for _, row := range []struct {
		reason string
		args   bson.D
		lacks  bool
	}{
		{"no options", bson.D{}, false},
		{"options that are none", bson.D{{Key: "driverInfoOptions", Value: "x"}}, false},
		{"no name", bson.D{{Key: "driverInfoOptions", Value: bson.D{{Key: "version", Value: "1"}}}}, false},
		{"a version that is no string", bson.D{{Key: "driverInfoOptions", Value: bson.D{{Key: "name", Value: "x"}, {Key: "version", Value: 1}}}}, false},
		{"the delimiter in the name", bson.D{{Key: "driverInfoOptions", Value: bson.D{{Key: "name", Value: "x|y"}}}}, false},
		{"an option that there is not", bson.D{{Key: "driverInfoOptions", Value: bson.D{{Key: "name", Value: "x"}, {Key: "colour", Value: "red"}}}}, true},
		{"an argument that there is not", bson.D{{Key: "colour", Value: "red"}}, true},
	} {
		out := b.do("client", "appendMetadata", row.args)
		if out.Err == nil || !out.Err.Client || (out.Err.Unsupported != "") != row.lacks {
			t.Errorf("%s: %+v", row.reason, out.Err)
		}
	}
}
