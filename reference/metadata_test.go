package reference

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// driverInfo reads NAME/VERSION/PLATFORM.
func driverInfo(text string) options.DriverInfo {
	parts := strings.Split(text, "/")
	return options.DriverInfo{Name: parts[0], Version: parts[1], Platform: parts[2]}
}

func TestMetadataIsAppended(t *testing.T) {
	testkit.PlayStories(t, "testdata/metadata.txt", func(t *testing.T, s testkit.Story) (transcript string) {
		var m metadata
		for line := range strings.Lines(s.Text) {
			given, ok := strings.CutPrefix(line, "> ")
			if !ok {
				continue
			}
			transcript += line
			if before := m.current.Load(); m.append(driverInfo(strings.TrimSpace(given))) != nil {
				testkit.Equal(t, "the metadata after an error", m.current.Load(), before)
				return transcript + "    rejected\n"
			}
		}
		all := m.current.Load()
		return transcript + "    " + all.Name + "/" + all.Version + "/" + all.Platform + "\n"
	})
}

// TestMetadataAtOnce appends concurrently.
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

// TestMetadataInHandshakes appends to a client without monitors, so that every connection belongs to its pool.
func TestMetadataInHandshakes(t *testing.T) {
	s := script(t, "load-balanced", 1)
	b := open(t, s.uri("appname=app"), Options{dial: s.dial}, nil)
	// sent checks the number of connections, and returns the driver and other metadata of the newest one.
	sent := func(connections int) (driver [3]string, others string) {
		b.perform("ping")
		s.mu.Lock()
		defer s.mu.Unlock()
		testkit.Equal(t, "the number of connections", len(s.first), connections)
		var all bson.D
		client := s.first[len(s.first)-1].Lookup("client").Document()
		testkit.Check(t, bson.Unmarshal(client, &all))
		all = slices.DeleteFunc(all, func(e bson.E) bool { return e.Key == "driver" || e.Key == "platform" })
		return [...]string{client.Lookup("driver", "name").StringValue(), client.Lookup("driver", "version").StringValue(),
			client.Lookup("platform").StringValue()}, raw(t, all).String()
	}
	first, others := sent(1)
	for i, row := range []struct{ give, name, version, platform string }{
		{"library/1.2/P", "|library", "|1.2", "|P"},
		{"framework/2.0/F library/1.2/P", "|library|framework", "|1.2|2.0", "|P|F"}, // a duplicate is ignored
	} {
		for _, text := range strings.Fields(row.give) {
			info := driverInfo(text)
			b.must("client", "appendMetadata",
				d("driverInfoOptions", d("name", info.Name, "version", info.Version, "platform", info.Platform)))
		}
		sent(i + 1) // appending opens no connection
		s.on("ping", step{close: true})
		b.perform("ping")
		driver, rest := sent(i + 2)
		testkit.Equal(t, row.give, driver, [...]string{first[0] + row.name, first[1] + row.version, first[2] + row.platform})
		testkit.Equal(t, "the rest", rest, others)
	}
}
