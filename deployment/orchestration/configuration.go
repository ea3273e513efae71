package orchestration

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Configuration is a configuration of mongo-orchestration for a cluster. Its methods do not modify it.
type Configuration struct {
	Name         string // of the preset or file
	Kind         Kind
	Preset       bool     // whether it is one of our presets
	NeedsFiles   bool     // whether it contains FilesToken
	NamesData    bool     // whether it names data folders; Body omits them
	TLS          bool     // whether the servers use TLS
	CAFile       string   // the certificate authority's file on the service's machine, or ""
	Auth         bool     // whether it has a user
	LoadBalanced bool     // whether its mongoses listen for a load balancer
	Parameters   []string // the names of all server parameters that it sets
	Secrets      []string // all strings that must not be printed

	text []byte // JSON
}

//go:embed presets/*.json
var presets embed.FS

// shapes are the presets without suffixes.
var shapes = []string{"single", "replicaset", "replicaset-one", "sharded", "load-balanced"}

// Presets lists the names of all presets: shapes, with or without access control and TLS.
func Presets() []string {
	var names []string
	for _, shape := range shapes {
		names = append(names, shape, shape+"-auth", shape+"-tls", shape+"-auth-tls")
	}
	return names
}

// Preset returns one of our configurations.
func Preset(name string) (Configuration, error) {
	if !slices.Contains(Presets(), name) {
		return Configuration{}, fmt.Errorf("unknown preset %q: choose one of %s", name, strings.Join(Presets(), ", "))
	}
	shape, tls := strings.CutSuffix(name, "-tls")
	shape, auth := strings.CutSuffix(shape, "-auth")
	var doc map[string]any
	for part, wanted := range map[string]bool{shape: true, "auth": auth, "tls": tls} {
		if !wanted {
			continue
		}
		text, err := presets.ReadFile("presets/" + part + ".json")
		if err == nil {
			err = json.Unmarshal(text, &doc) // adds to the keys of other parts
		}
		if err != nil {
			return Configuration{}, fmt.Errorf("preset %s: %w", part, err)
		}
	}
	return configuration(name, doc, true)
}

// Parse parses a configuration in the format of drivers-evergreen-tools. Its keys determine its kind. Errors never
// repeat the text, because it may contain a password.
func Parse(name string, text []byte) (Configuration, error) {
	doc, err := decode(text)
	if err != nil {
		return Configuration{}, fmt.Errorf("%s: %w", name, err)
	}
	return configuration(name, doc, false)
}

func decode(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // keeps 27017 from becoming 27017.0
	var doc map[string]any
	if err := decoder.Decode(&doc); err != nil || doc == nil {
		if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
			return nil, fmt.Errorf("it is not JSON: %w at byte %d", syntax, syntax.Offset)
		}
		return nil, errors.New("it is not a JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the JSON object")
	}
	return doc, nil
}

// kindKeys are the keys that identify a kind.
var kindKeys = map[Kind][]string{
	ShardedCluster: {"shards", "routers", "configsvrs"},
	ReplicaSet:     {"members"},
	Server:         {"name", "procParams"},
}

func configuration(name string, doc map[string]any, preset bool) (Configuration, error) {
	var found []Kind
	for _, kind := range kinds {
		if slices.ContainsFunc(kindKeys[kind], func(k string) bool { _, is := doc[k]; return is }) {
			found = append(found, kind)
		}
	}
	switch {
	case len(found) == 0:
		return Configuration{},
			fmt.Errorf("%s: it is not a configuration of mongo-orchestration: a server has procParams, a replica set members, a sharded cluster shards", name)
	case len(found) > 1:
		return Configuration{}, fmt.Errorf("%s: its kind is ambiguous: it has keys of %s and of %s", name, found[0], found[1])
	}
	c := Configuration{Name: name, Kind: found[0], Preset: preset}
	if err := c.read(doc); err != nil {
		return Configuration{}, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// FilesToken stands for the folder of certificates in configurations. drivers-evergreen-tools replaces it with its own
// folder.
const FilesToken = "ABSOLUTE_PATH_REPLACEMENT_TOKEN"

const loadBalancerPort = "loadBalancerPort"

// read checks a configuration and sets the fields.
func (c *Configuration) read(doc map[string]any) (err error) {
	if err := check(c.Kind, doc); err != nil {
		return err
	}
	for _, key := range []string{"id", "version", "login", "password", "auth_key"} {
		if n, ok := doc[key].(json.Number); ok { // a text: as a number, 8.10 would be 8.1 to the service
			doc[key] = n.String()
		}
	}
	ssl, _ := doc["sslParams"].(map[string]any)
	c.TLS, c.CAFile = len(ssl) > 0, firstText(ssl, "tlsCAFile", "sslCAFile")
	c.Parameters, c.Auth = nil, firstText(doc, "login") != ""
	c.Secrets = slices.DeleteFunc([]string{firstText(doc, "password"), firstText(doc, "auth_key"),
		firstText(ssl, "sslPEMKeyPassword"), firstText(ssl, "tlsCertificateKeyFilePassword"),
		firstText(ssl, "sslClusterPassword"), firstText(ssl, "tlsClusterPassword")}, func(s string) bool { return s == "" })
	for _, n := range nodes(c.Kind, doc) {
		if n.options["keyFile"] != nil {
			return errors.New("keyFile: the service removes that file with the cluster; use auth_key with its content")
		}
		c.NamesData = c.NamesData || n.options[dataFolder] != nil
		set, _ := n.options["setParameter"].(map[string]any)
		c.Parameters = slices.AppendSeq(c.Parameters, maps.Keys(set))
	}
	slices.Sort(c.Parameters)
	c.Parameters = slices.Compact(c.Parameters)
	c.LoadBalanced = slices.Contains(c.Parameters, loadBalancerPort)
	c.text, err = json.Marshal(doc)
	c.NeedsFiles = bytes.Contains(c.text, []byte(FilesToken))
	return err
}

// firstText returns the value of the first key that has a string.
func firstText(doc map[string]any, keys ...string) string {
	for _, key := range keys {
		if s, ok := doc[key].(string); ok {
			return s
		}
	}
	return ""
}

// doc returns the configuration as a map that may be modified.
func (c Configuration) doc() map[string]any {
	doc, _ := decode(c.text) // encoded by read
	return doc
}

// Settings complete a configuration.
type Settings struct {
	Files   string // replaces FilesToken, unless it is ""
	Version string // a release of the service, or "" for the configuration's
}

// With applies settings, and generates passwords where the configuration has empty ones.
func (c Configuration) With(s Settings) Configuration {
	if s.Files != "" {
		files, _ := json.Marshal(s.Files)
		c.text = bytes.ReplaceAll(c.text, []byte(FilesToken), files[1:len(files)-1])
	}
	doc := c.doc()
	if s.Version != "" {
		doc["version"] = s.Version
	}
	for _, key := range []string{"password", "auth_key"} {
		if doc[key] == "" {
			doc[key] = rand.Text()
		}
	}
	_ = c.read(doc) // it succeeded before
	return c
}

// partMark separates the id of a cluster from the id of a part.
const partMark = "-part-"

var notInIDs = regexp.MustCompile(`[^A-Za-z0-9]+`)

// Mark is part of the id of a cluster that a run creates, so that it can be removed without other information about the
// run.
type Mark struct {
	Owner string    // the run: letters, digits and hyphens
	At    time.Time // in seconds
}

const markTime = "20060102t150405"

var marked = regexp.MustCompile(`^utr-.*-(\d{8}t\d{6})-([0-9a-z-]+)-[0-9a-z]{10}$`)

func markOf(id string) (m Mark, found bool) {
	parts := marked.FindStringSubmatch(id)
	if parts == nil {
		return m, false
	}
	at, err := time.Parse(markTime, parts[1])
	return Mark{Owner: parts[2], At: at}, err == nil
}

// NewID returns a unique id that contains a mark.
func (c Configuration) NewID(m Mark) string {
	id := cmp.Or(firstText(c.doc(), "id"), strings.TrimSuffix(c.Name[strings.LastIndexAny(c.Name, `/\`)+1:], ".json"))
	id = strings.Trim(notInIDs.ReplaceAllString(id, "-"), "-")
	return strings.ToLower(strings.Join([]string{"utr", id[:min(len(id), 24)], m.At.UTC().Format(markTime), m.Owner,
		rand.Text()[:10]}, "-"))
}

// Body returns the request body for creating a cluster. The id of each server begins with the cluster's, so that parts
// of a failed creation can be found. It omits data folders: the service would remove them with the cluster even if it
// has not created them. Unless alone is set, it also omits ports and log files, because other clusters of the same
// configuration may exist.
func (c Configuration) Body(id string, alone bool) map[string]any {
	doc := c.doc()
	doc["id"] = id
	if c.Kind == Server && firstText(doc, "name") == "" {
		doc["name"] = "mongod"
	}
	if _, given := doc["configsvrs"]; c.Kind == ShardedCluster && !given {
		doc["configsvrs"] = []any{map[string]any{}}
	}
	if version, given := doc["version"]; given { // the service does not pass it on to config servers
		for _, s := range objects(doc["configsvrs"]) {
			s["version"] = cmp.Or(s["version"], version)
		}
	}
	for _, n := range nodes(c.Kind, doc) {
		n.doc[n.key] = id + partMark + n.id
		delete(n.options, dataFolder)
		if !alone {
			delete(n.options, "port")
			delete(n.options, "logpath")
		}
	}
	return doc
}

// CheckReleases checks that servers run the releases that a Body requests, and servers of the same release the same
// version. If no release is requested, the release is the service's default.
func CheckReleases(kind Kind, body map[string]any, servers []Running) error {
	requested := map[string]string{}
	all := nodes(kind, body)
	for _, n := range all {
		requested[firstText(n.doc, "server_id")] = n.release
	}
	first := map[string]Running{}
	var errs []error
	for _, s := range servers {
		release, known := requested[s.ID]
		if !known && kind == Server {
			release = all[0].release
		}
		same, seen := first[release]
		number := releaseNumber.FindStringSubmatch(release)
		switch {
		case s.Version == "":
		case number != nil && !strings.HasPrefix(s.Version+".", number[1]+"."):
			errs = append(errs, fmt.Errorf("server %s (%s) runs %s instead of %s", s.Host, s.ID, s.Version, release))
		case seen && s.Version != same.Version:
			errs = append(errs, fmt.Errorf("server %s (%s) runs %s, but %s (%s) runs %s", s.Host, s.ID, s.Version, same.Host,
				same.ID, same.Version))
		case !seen:
			first[release] = s
		}
	}
	return errors.Join(errs...)
}

// releaseNumber matches the names of releases that are the beginning of a version, such as 8.0 and v8.0-latest.
var releaseNumber = regexp.MustCompile(`^v?(\d+\.\d+(?:\.\d+)?)(?:-latest)?$`)

// dataFolder is the option with a server's data folder.
const dataFolder = "dbpath"

// SetBalancerPorts sets a port for load balancers on each mongos of a Body that has one.
func SetBalancerPorts(body map[string]any, next func() (int, error)) ([]int, error) {
	var ports []int
	for _, r := range objects(body["routers"]) {
		set, _ := r["setParameter"].(map[string]any)
		if _, wanted := set[loadBalancerPort]; !wanted {
			continue
		}
		port, err := next()
		if err != nil {
			return nil, err
		}
		set[loadBalancerPort] = port
		ports = append(ports, port)
	}
	return ports, nil
}

// node is an object that describes a server, or a replica set in a sharded cluster.
type node struct {
	key, id string         // the key of its id, and the part of its id after the cluster's
	doc     map[string]any // the object with the id
	options map[string]any // of its process or processes
	release string         // requested for it, or ""
}

// nodes returns all servers and replica sets. It adds missing objects.
func nodes(kind Kind, doc map[string]any) (all []node) {
	version := func(of map[string]any, otherwise string) string { return cmp.Or(firstText(of, "version"), otherwise) }
	release := version(doc, "")
	members := func(prefix string, list any, release string) {
		for i, m := range objects(list) {
			all = append(all, node{"server_id", fmt.Sprint(prefix, i), m, object(m, "procParams"), version(m, release)})
		}
	}
	switch kind {
	case Server:
		all = append(all, node{doc: map[string]any{}, options: object(doc, "procParams"), release: release})
	case ReplicaSet:
		members("member", doc["members"], release)
	case ShardedCluster:
		for i, r := range objects(doc["routers"]) {
			all = append(all, node{"server_id", fmt.Sprint("router", i), r, r, version(r, release)})
		}
		for i, s := range objects(doc["shards"]) {
			params, id, key := object(s, "shardParams"), fmt.Sprint("shard", i), "server_id"
			if params["members"] != nil {
				key = "rs_id"
				members(id+"-", params["members"], version(params, release))
			}
			all = append(all, node{key, id, params, object(params, "procParams"), version(params, release)})
		}
		configs := objects(doc["configsvrs"])
		for i, s := range configs {
			if len(configs) > 1 {
				all = append(all, node{"server_id", fmt.Sprint("config", i), s, s, version(s, release)})
				continue
			}
			if s["members"] == nil { // a replica set with one member by default
				s["members"] = []any{map[string]any{}}
			}
			members("config-", s["members"], version(s, release))
			all = append(all, node{"rs_id", "config", s, s, version(s, release)})
		}
	}
	return all
}

// check checks that objects and lists are where they must be.
func check(kind Kind, doc map[string]any) error {
	for _, key := range kindKeys[kind] {
		all, isList := doc[key].([]any)
		if _, given := doc[key]; kind != Server && given && (!isList || len(objects(all)) != len(all)) {
			return fmt.Errorf("%s must be a list of objects", key)
		}
	}
	if kind == ReplicaSet && len(objects(doc["members"])) == 0 {
		return errors.New("it has no members")
	}
	return nil
}

// object returns the object at a key. If it is missing, object adds it.
func object(of map[string]any, key string) map[string]any {
	out, ok := of[key].(map[string]any)
	if !ok {
		out = make(map[string]any)
		of[key] = out
	}
	return out
}

// objects returns the elements of a list that are objects.
func objects(list any) []map[string]any {
	all, _ := list.([]any)
	var out []map[string]any
	for _, e := range all {
		if o, ok := e.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}
