package specs

import (
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// define adds an entity to the scope. Entity Map: test runners raise an error if a name is reused.
func (i *inspection) define(p place, s scope, kind entities.Kind) {
	if !p.exists() || p.Kind != source.String {
		return
	}
	if _, exists := s.kinds[p.String]; exists {
		i.report("duplicate-entity", p, "entity %q already exists", p.String)
		return
	}
	s.kinds[p.String] = kind
}

// checkName checks the name of a database or collection. A server rejects namespaces that are empty or have a zero
// byte.
func (i *inspection) checkName(p place) {
	if p.exists() && (p.String == "" || strings.IndexByte(p.String, 0) >= 0) {
		i.report("namespace", p, "the name of a database or collection cannot be empty or have a zero byte")
	}
}

// refer checks a reference to an entity of a kind, or of any kind if it is "". Entity Map: test runners raise an error
// if an entity is not found or has an unexpected type. others are other words that are allowed in place of a reference.
func (i *inspection) refer(p place, s scope, want entities.Kind, others ...string) {
	if !p.exists() || p.Kind != source.String {
		return
	}
	switch got := s.kinds[p.String]; {
	case got == "" && want == "":
		i.report("undefined-entity", p, "entity %q is not defined here%s", p.String,
			suggest.Hint(p.String, slices.AppendSeq(others, maps.Keys(s.kinds))))
	case got == "":
		i.report("undefined-entity", p, "entity %q is not defined here; a %s is required%s", p.String, want,
			suggest.Hint(p.String, s.of(want)))
	case want != "" && got != want:
		i.report("undefined-entity", p, "entity %q is a %s, not a %s", p.String, got, want)
	}
}

// of returns the names of the entities of a kind.
func (s scope) of(kind entities.Kind) (names []string) {
	for name, k := range s.kinds {
		if k == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// URIOptions lists all connection options (URI Options; Client Side Operations Timeout; Client
// Backpressure; Connection Monitoring and Pooling for the last three).
func URIOptions() []string {
	return strings.Fields(`
	appname authMechanism authMechanismProperties authSource compressors connectTimeoutMS directConnection
	enableOverloadRetargeting heartbeatFrequencyMS journal loadBalanced localThresholdMS maxAdaptiveRetries
	maxConnecting maxIdleTimeMS maxPoolSize maxStalenessSeconds minPoolSize proxyHost proxyPassword proxyPort
	proxyUsername readConcernLevel readPreference readPreferenceTags replicaSet retryReads retryWrites
	serverMonitoringMode serverSelectionTimeoutMS serverSelectionTryOnce socketTimeoutMS srvMaxHosts
	srvServiceName ssl timeoutMS tls tlsAllowInvalidCertificates tlsAllowInvalidHostnames tlsCAFile
	tlsCertificateKeyFile tlsCertificateKeyFilePassword tlsDisableCertificateRevocationCheck
	tlsDisableOCSPEndpointCheck tlsInsecure w wTimeoutMS zlibCompressionLevel
	waitQueueMultiple waitQueueSize waitQueueTimeoutMS`)
}

// IsURIOption reports whether a connection option is in URIOptions. Names are case-insensitive (Connection String,
// "Keys").
func IsURIOption(name string) bool {
	return slices.ContainsFunc(URIOptions(), func(o string) bool { return strings.EqualFold(o, name) })
}

// checkClient checks the options of a client.
//
// Connection String, "Keys": drivers ignore unknown options, so a misspelled one has no
// effect. Names are case-insensitive.
//
// serverApi: test runners fail if the driver does not support the version. Versioned API, "Declaring
// an API Version": the only version is 1.
func (i *inspection) checkClient(client place) {
	for _, f := range client.get("uriOptions").fields() {
		if !IsURIOption(f.Key) {
			i.reportAt("uri-option", f.KeyPosition, client.path+".uriOptions."+f.Key, "unknown URI option %s%s", f.Key,
				suggest.Hint(f.Key, URIOptions()))
		}
	}
	if v := client.get("serverApi").get("version"); v.exists() && v.String != "1" {
		i.report("api-version", v, "API version %q does not exist; the only one is \"1\"", v.String)
	}
	i.checkKMSCredentials(client.get("autoEncryptOpts"))
}

// credentials are the fields of a KMS provider of which either all or none must be set (Client Side
// Encryption, "KMSProviders"). An accessToken replaces them.
var credentials = map[string][]string{
	"aws":   {"accessKeyId", "secretAccessKey"},
	"azure": {"tenantId", "clientId", "clientSecret"},
	"gcp":   {"email", "privateKey"},
	"kmip":  {"endpoint"},
	"local": {"key"},
}

// entity.clientEncryption: a missing field is not configured, so creating the entity fails.
func (i *inspection) checkKMSCredentials(options place) {
	providers := options.get("kmsProviders")
	for _, f := range providers.fields() {
		name, _, _ := strings.Cut(f.Key, ":")
		if len(f.Value.Fields) == 0 || f.Value.Get("accessToken") != nil {
			continue
		}
		for _, key := range credentials[name] {
			if f.Value.Get(key) == nil {
				i.report("kms-credentials", providers.get(f.Key), "credentials of KMS provider %s lack %s", f.Key, key)
			}
		}
	}
}
