package specs

import (
	"strings"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
)

// Entity Map: test runners raise an error if a name is used again.
func checkDuplicateEntities(i *inspection) {
	for _, d := range i.definitions {
		i.report(d.place, "entity %q is created again", d.id)
	}
}

// Entity Map: test runners raise an error if an entity is not found or is of
// an unexpected type.
func checkReferences(i *inspection) {
	for _, r := range i.references {
		switch {
		case r.got == "":
			i.report(r.place, "entity %q is not defined here%s", r.String, wanted(r.want))
		case r.want != "" && r.got != r.want:
			i.report(r.place, "entity %q is a %s, not a %s", r.String, r.got, r.want)
		}
	}
}

func wanted(kind string) string {
	if kind == "" {
		return ""
	}
	return "; a " + kind + " is required"
}

// serverApi: test runners fail if the version is not supported by the driver.
// Versioned API, "Declaring an API Version": there is version 1 alone.
func checkAPIVersions(i *inspection, client place) {
	if v := client.get("serverApi").get("version"); v.exists() && v.String != "1" {
		i.report(v, "API version %q does not exist; the only one is \"1\"", v.String)
	}
}

// credentials are the fields that a KMS provider needs to be given all, or
// none (Client Side Encryption, "KMSProviders"). An accessToken stands for
// all of them.
var credentials = map[string][]string{
	"aws":   {"accessKeyId", "secretAccessKey"},
	"azure": {"tenantId", "clientId", "clientSecret"},
	"gcp":   {"email", "privateKey"},
	"kmip":  {"endpoint"},
	"local": {"key"},
}

// entity.clientEncryption: a field that is not given is not configured, which
// makes the creation of the entity fail.
func checkKMSCredentials(i *inspection) {
	for _, options := range i.encryption {
		if !options.exists() {
			continue
		}
		providers := options.get("kmsProviders")
		if !providers.exists() {
			continue
		}
		for _, f := range providers.Fields {
			name, _, _ := strings.Cut(f.Key, ":")
			if len(f.Value.Fields) == 0 || f.Value.Get("accessToken") != nil {
				continue
			}
			for _, key := range credentials[name] {
				if f.Value.Get(key) == nil {
					i.report(providers.get(f.Key), "credentials of KMS provider %s lack %s", f.Key, key)
				}
			}
		}
	}
}

// Client Operations and those that follow: an operation is an API method of
// the entity's class.
func checkOperationNames(i *inspection, s step) {
	if s.Known || s.Kind == "" {
		return // an undefined object is reported as such
	}
	name := s.get("name")
	switch others := operations.KindsWith(s.Name); {
	case s.Name == "loop":
		i.report(name, "the loop operation is not supported: it is deprecated, and made for tests of Atlas that end by a signal")
	case s.Kind == operations.Thread || s.Kind == operations.Topology || s.Kind == operations.SavedValue:
		i.report(name, "entity %q is a %s, on which no operation can be performed", s.Object, s.Kind)
	case len(others) > 0:
		i.report(name, "operation %s does not exist on a %s; it does on: %s", s.Name, s.Kind, joinKinds(others))
	default:
		i.report(name, "operation %s is not known", s.Name)
	}
}

func joinKinds(kinds []operations.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

func checkUnknownArguments(i *inspection, s step) {
	if !s.Known || s.Arguments == nil {
		return
	}
	for _, f := range s.Arguments.Fields {
		if _, takes := s.Row.Argument(f.Key); !takes {
			i.reportAt(f.KeyPosition, s.path+".arguments."+f.Key, "operation %s has no argument %s", s.Name, f.Key)
		}
	}
}

func checkMissingArguments(i *inspection, s step) {
	for _, a := range s.Row.Arguments {
		if a.Required && s.Arguments.Get(a.Name) == nil {
			i.report(s.place, "operation %s requires argument %s", s.Name, a.Name)
		}
	}
}

// Special Test Operations: not to be combined with expectations or results.
func checkSpecialOperations(i *inspection, s step) {
	if s.Kind != operations.TestRunner {
		return
	}
	for _, key := range []string{"expectError", "expectResult", "saveResultAsEntity", "ignoreResultAndError"} {
		if v := s.get(key); v.exists() {
			i.report(v, "%s cannot be used with an operation of the test runner", key)
		}
	}
}

// Configuring Fail Points: the command and its mode.
func checkFailPoints(i *inspection, s step) {
	if !s.Known || s.Arguments.Get("failPoint") == nil || s.Kind != operations.TestRunner {
		return
	}
	f := s.get("arguments").get("failPoint")
	switch {
	case f.Kind != source.Document || len(f.Fields) == 0 || f.Fields[0].Key != "configureFailPoint" || f.Fields[0].Value.Kind != source.String:
		i.report(f, "a fail point is a document that starts with configureFailPoint, the name of a fail point")
	case f.Value.Get("mode") == nil:
		i.report(f, "the fail point has no mode")
	}
}
