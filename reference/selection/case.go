package selection

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Case is one selection, read from a file.
type Case struct {
	Topology      Topology
	Preference    Preference
	Deprioritized []string // addresses
	Options       Options
}

// caseFile is a test file of Server Selection or Max Staleness. Expected results are accepted and ignored.
type caseFile struct {
	HeartbeatMS   int64        `yaml:"heartbeatFrequencyMS"`
	Topology      caseTopology `yaml:"topology_description"`
	Operation     string       `yaml:"operation"`
	Preference    Preference   `yaml:"read_preference"`
	Deprioritized []caseServer `yaml:"deprioritized_servers"`

	Suitable    any `yaml:"suitable_servers"`
	Window      any `yaml:"in_latency_window"`
	Error       any `yaml:"error"`
	Mocked      any `yaml:"mocked_topology_state"`
	Iterations  any `yaml:"iterations"`
	Outcome     any `yaml:"outcome"`
	Description any `yaml:"description"`
}

type caseTopology struct {
	Type    string       `yaml:"type"`
	Servers []caseServer `yaml:"servers"`
}

type caseServer struct {
	Address    string            `yaml:"address"`
	Type       string            `yaml:"type"`
	RTT        float64           `yaml:"avg_rtt_ms"`
	Tags       map[string]string `yaml:"tags"`
	LastUpdate int64             `yaml:"lastUpdateTime"`
	MaxWire    any               `yaml:"maxWireVersion"`
	LastWrite  struct {
		Date struct {
			Long string `yaml:"$numberLong"`
		} `yaml:"lastWriteDate"`
	} `yaml:"lastWrite"`
}

// Vocabulary returns the keys of a document in a case and the types that it can have. key is the key of the document,
// "" for the whole case. Documents with other keys have none.
func Vocabulary(key string) (keys, types []string) {
	of, types := reflect.Type(nil), texts(serverTypes)
	switch key {
	case "":
		of = reflect.TypeFor[caseFile]()
	case "topology_description":
		of, types = reflect.TypeFor[caseTopology](), texts(topologyTypes)
	case "servers", "deprioritized_servers":
		of = reflect.TypeFor[caseServer]()
	case "read_preference":
		of = reflect.TypeFor[Preference]()
	default:
		return nil, nil
	}
	for i := range of.NumField() {
		if tag := of.Field(i).Tag.Get("yaml"); tag != "-" {
			keys = append(keys, tag)
		}
	}
	return keys, types
}

func texts[T ~string](words []T) (all []string) {
	for _, word := range words {
		all = append(all, string(word))
	}
	return all
}

// ParseCase reads a case from a YAML document in the format of the Server Selection test files. It returns an error
// for unknown fields and types. heartbeatFrequencyMS defaults to 10 seconds; localThresholdMS is 15.
func ParseCase(text []byte) (Case, error) {
	var f caseFile
	if err := decode(text, &f); err != nil {
		return Case{}, err
	}
	c := Case{Topology: Topology{Type: TopologyType(f.Topology.Type)}, Preference: f.Preference,
		Options: Options{LocalThreshold: DefaultLocalThreshold, HeartbeatFrequency: 10 * time.Second}}
	if f.HeartbeatMS > 0 {
		c.Options.HeartbeatFrequency = time.Duration(f.HeartbeatMS) * time.Millisecond
	}
	if !slices.Contains(topologyTypes, c.Topology.Type) {
		return c, fmt.Errorf("topology_description.type: %q is not one of %v", f.Topology.Type, topologyTypes)
	}
	for i, s := range f.Topology.Servers {
		server, err := s.server()
		if err != nil {
			return c, fmt.Errorf("topology_description.servers[%d]: %w", i, err)
		}
		c.Topology.Servers = append(c.Topology.Servers, server)
	}
	for _, s := range f.Deprioritized {
		c.Deprioritized = append(c.Deprioritized, s.Address)
	}
	c.Options.Write = f.Operation == "write"
	if !slices.Contains([]string{"", "read", "write"}, f.Operation) {
		return c, fmt.Errorf("operation: %q is not one of read, write", f.Operation)
	}
	return c, nil
}

// ParsePreference reads a read preference from YAML: either a mode, or a document with mode, tag_sets and
// maxStalenessSeconds. It does not validate the preference.
func ParsePreference(text string) (Preference, error) {
	var p Preference
	if decode([]byte(text), &p.Mode) != nil {
		p = Preference{}
		if err := decode([]byte(text), &p); err != nil {
			return Preference{}, err
		}
	}
	return p, nil
}

// decode reads one YAML document and rejects unknown fields.
func decode(text []byte, to any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(to)
	if errors.Is(err, io.EOF) {
		return errors.New("empty document")
	}
	if err == nil {
		return nil
	}
	said := strings.TrimPrefix(err.Error(), "yaml: construct errors: ")
	for _, plain := range [][2]string{ // how the decoder names types of Go
		{`field (\S+) not found in type \S+?(;|$)`, "unknown key $1$2"},
		{"cannot construct !!\\w+ (`[^`]*`) into .*?(; line|$)", "$1 does not belong there$2"},
		{`cannot construct !!map into .*?(; line|$)`, "a document does not belong there$1"},
		{`cannot construct !!seq into .*?(; line|$)`, "a list does not belong there$1"},
	} {
		said = regexp.MustCompile(plain[0]).ReplaceAllString(said, plain[1])
	}
	return errors.New(said)
}

func (s caseServer) server() (Server, error) {
	out := Server{Address: s.Address, Type: ServerType(s.Type), Tags: s.Tags,
		RTT:        time.Duration(s.RTT * float64(time.Millisecond)),
		LastUpdate: time.UnixMilli(s.LastUpdate)}
	if s.Address == "" {
		return out, errors.New("address is missing")
	}
	if !slices.Contains(serverTypes, out.Type) {
		return out, fmt.Errorf("type: %q is not one of %v", s.Type, serverTypes)
	}
	if ns := s.RTT * float64(time.Millisecond); !(math.Abs(ns) < math.MaxInt64) { // NaN is not
		return out, fmt.Errorf("avg_rtt_ms: %v is not a duration", s.RTT)
	}
	date := s.LastWrite.Date.Long
	if date == "" {
		return out, nil
	}
	ms, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return out, fmt.Errorf("lastWrite.lastWriteDate: %q is not a number", date)
	}
	out.LastWrite = time.UnixMilli(ms)
	return out, nil
}
