package specs

import (
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// define notes an entity. Entity Map: test runners raise an error if a name is
// used again.
func (i *inspection) define(p place, s scope, kind string) {
	if !p.exists() || p.Kind != source.String {
		return
	}
	if _, again := s.kinds[p.String]; again {
		i.report("duplicate-entity", p, "entity %q is created again", p.String)
		return
	}
	s.kinds[p.String] = kind
}

// refer checks the name of an entity that must be of a kind, "" for any. Entity
// Map: test runners raise an error if an entity is not found or is of an
// unexpected type.
func (i *inspection) refer(p place, s scope, want string) {
	if !p.exists() || p.Kind != source.String {
		return
	}
	switch got := s.kinds[p.String]; {
	case got == "" && want == "":
		i.report("undefined-entity", p, "entity %q is not defined here", p.String)
	case got == "":
		i.report("undefined-entity", p, "entity %q is not defined here; a %s is required", p.String, want)
	case want != "" && got != want:
		i.report("undefined-entity", p, "entity %q is a %s, not a %s", p.String, got, want)
	}
}

// uriOptions are the connection options that there are (URI Options; Client
// Side Operations Timeout; Client Backpressure; Connection Monitoring and
// Pooling for the last two).
var uriOptions = strings.Fields(`
	appname authMechanism authMechanismProperties authSource compressors connectTimeoutMS directConnection
	enableOverloadRetargeting heartbeatFrequencyMS journal loadBalanced localThresholdMS maxAdaptiveRetries
	maxConnecting maxIdleTimeMS maxPoolSize maxStalenessSeconds minPoolSize proxyHost proxyPassword proxyPort
	proxyUsername readConcernLevel readPreference readPreferenceTags replicaSet retryReads retryWrites
	serverMonitoringMode serverSelectionTimeoutMS serverSelectionTryOnce socketTimeoutMS srvMaxHosts
	srvServiceName ssl timeoutMS tls tlsAllowInvalidCertificates tlsAllowInvalidHostnames tlsCAFile
	tlsCertificateKeyFile tlsCertificateKeyFilePassword tlsDisableCertificateRevocationCheck
	tlsDisableOCSPEndpointCheck tlsInsecure w wTimeoutMS zlibCompressionLevel
	waitQueueMultiple waitQueueSize waitQueueTimeoutMS`)

// checkClient checks the options of a client.
//
// Connection String, "Connection Options": drivers ignore an option that they
// do not know, so that one that is misspelt has no effect. Names are compared
// without regard to case.
//
// serverApi: test runners fail if the version is not supported by the driver.
// Versioned API, "Declaring an API Version": there is version 1 alone.
func (i *inspection) checkClient(client place) {
	if options := client.get("uriOptions"); options.exists() {
		for _, f := range options.Fields {
			if !slices.ContainsFunc(uriOptions, func(name string) bool { return strings.EqualFold(name, f.Key) }) {
				i.reportAt("uri-option", f.KeyPosition, options.path+"."+f.Key, "there is no URI option %s", f.Key)
			}
		}
	}
	if v := client.get("serverApi").get("version"); v.exists() && v.String != "1" {
		i.report("api-version", v, "API version %q does not exist; the only one is \"1\"", v.String)
	}
	i.checkKMSCredentials(client.get("autoEncryptOpts"))
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
func (i *inspection) checkKMSCredentials(options place) {
	providers := options.get("kmsProviders")
	if !providers.exists() {
		return
	}
	for _, f := range providers.Fields {
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
