package schema

const suite reference = "suite"

// format is the annotated source: the data model of the Unified Test Format. A key or value that is newer than its
// context has the minor version that introduced it. The package comment describes how to add a version.
var format = map[string]shape{
	"suite": objectOf("a test file",
		key("description", text).required(),
		key("schemaVersion", version{}).required(),
		key("runOnRequirements", someOf(reference("runOnRequirement"))),
		key("createEntities", someOf(reference("entity"))),
		key("initialData", someOf(reference("collectionData"))),
		key("tests", someOf(reference("test"))).required(),
		key("_yamlAnchors", document()).since(1),
	),

	"runOnRequirement": nonEmpty("a runOnRequirement",
		key("minServerVersion", version{}),
		key("maxServerVersion", version{}),
		key("topologies", someOf(
			oneOf("single", "replicaset", "sharded", "sharded-replicaset").since(3, "load-balanced"))),
		key("serverParameters", nonEmpty("serverParameters").with(anything{})).since(1),
		key("auth", boolean).since(3),
		key("serverless", oneOf("require", "forbid", "allow")).since(4),
		key("csfle", either{{shape: boolean}, {shape: reference("csfleRequirement"), from: 25}}).since(8),
		key("authMechanism", text).since(19),
	),
	"csfleRequirement": nonEmpty("a csfle requirement", key("minLibmongocryptVersion", version{})),

	"entity": choiceOf("an entity",
		key("client", reference("client")),
		key("clientEncryption", reference("clientEncryption")).since(8),
		entity("database", "client", key("databaseName", text).required(),
			key("databaseOptions", reference("collectionOrDatabaseOptions"))),
		entity("collection", "database", key("collectionName", text).required(),
			key("collectionOptions", reference("collectionOrDatabaseOptions"))),
		entity("session", "client", key("sessionOptions", sessionOptions)),
		entity("bucket", "database", key("bucketOptions", bucketOptions)),
		key("thread", objectOf("a thread entity", key("id", text).required())).since(10),
	),
	"client": objectOf("a client entity",
		key("id", text).required(),
		key("uriOptions", document()),
		key("useMultipleMongoses", boolean),
		key("observeEvents", someOf(reference("observableEvent"))),
		key("ignoreCommandMonitoringEvents", someOf(text)),
		key("serverApi", reference("serverApi")).since(1),
		key("storeEventsAsEntities", someOf(reference("storeEventsAsEntity"))).since(2).deprecatedSince(24),
		key("observeSensitiveCommands", boolean).since(5),
		key("observeLogMessages", nonEmpty("observeLogMessages",
			key("command", reference("logSeverityLevel")),
			key("topology", reference("logSeverityLevel")),
			key("serverSelection", reference("logSeverityLevel")),
			key("connection", reference("logSeverityLevel")),
		)).since(13),
		key("autoEncryptOpts", reference("autoEncryptOpts")).since(23),
		key("awaitMinPoolSizeMS", integer).since(26),
		key("observeTracingMessages", objectOf("observeTracingMessages", key("enableCommandPayload", boolean))).since(27),
	),
	"observableEvent": oneOf(
		"commandStartedEvent", "commandSucceededEvent", "commandFailedEvent",
	).since(3,
		"poolCreatedEvent", "poolReadyEvent", "poolClearedEvent", "poolClosedEvent",
		"connectionCreatedEvent", "connectionReadyEvent", "connectionClosedEvent",
		"connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent",
		"connectionCheckedOutEvent", "connectionCheckedInEvent",
	).since(10, "serverDescriptionChangedEvent").
		since(14, "topologyDescriptionChangedEvent").
		since(20, "topologyOpeningEvent", "topologyClosedEvent").
		since(unlisted, "serverHeartbeatStartedEvent", "serverHeartbeatSucceededEvent", "serverHeartbeatFailedEvent"),
	"storeEventsAsEntity": objectOf("a storeEventsAsEntity",
		key("id", text).required(),
		key("events", someOf(oneOf(
			"CommandStartedEvent", "CommandSucceededEvent", "CommandFailedEvent",
			"PoolCreatedEvent", "PoolReadyEvent", "PoolClearedEvent", "PoolClosedEvent",
			"ConnectionCreatedEvent", "ConnectionReadyEvent", "ConnectionClosedEvent",
			"ConnectionCheckOutStartedEvent", "ConnectionCheckOutFailedEvent",
			"ConnectionCheckedOutEvent", "ConnectionCheckedInEvent",
		).since(10, "ServerDescriptionChangedEvent").
			since(14, "TopologyDescriptionChangedEvent"))).required(),
	),
	"serverApi": objectOf("a serverApi",
		key("version", text).required(),
		key("strict", boolean),
		key("deprecationErrors", boolean),
	),
	"collectionOrDatabaseOptions": objectOf("collectionOrDatabaseOptions",
		readConcern, readPreference, writeConcern, key("timeoutMS", integer).since(9)),

	"clientEncryption": objectOf("a clientEncryption entity",
		key("id", text).required(),
		key("clientEncryptionOpts", objectOf("clientEncryptionOpts",
			key("keyVaultClient", text).required(),
			key("keyVaultNamespace", text).required(),
			key("kmsProviders", reference("kmsProviders")).required(),
			key("keyExpirationMS", integer).since(22),
		)).required(),
	),
	"autoEncryptOpts": objectOf("autoEncryptOpts",
		key("keyVaultNamespace", text).required(),
		key("kmsProviders", reference("kmsProviders")).required(),
		key("bypassAutoEncryption", boolean),
		key("schemaMap", objectOf("").with(document())),
		key("extraOptions", document()),
		key("encryptedFieldsMap", objectOf("").with(document())),
		key("bypassQueryAnalysis", boolean),
		key("keyExpirationMS", integer),
	),
	"kmsProviders": objectOf("kmsProviders",
		provider("aws", "an aws", "accessKeyId", "secretAccessKey", "sessionToken"),
		provider("azure", "an azure", "tenantId", "clientId", "clientSecret", "identityPlatformEndpoint", "accessToken"),
		provider("gcp", "a gcp", "email", "privateKey", "endpoint", "accessToken"),
		provider("kmip", "a kmip", "endpoint"),
		provider("local", "a local", "key"),
	),
	"credential": either{{shape: text}, {shape: objectOf("a placeholder", key("$$placeholder", anything{}).required())}},

	"collectionData": objectOf("a collectionData",
		key("collectionName", text).required(),
		key("databaseName", text).required(),
		key("createOptions", objectOf("createOptions",
			key("writeConcern", forbidden("the test runner always creates collections with write concern majority")),
		).with(anything{})).since(9),
		key("documents", listOf(document())).required(),
	),

	"test": objectOf("a test",
		key("description", text).required(),
		key("runOnRequirements", someOf(reference("runOnRequirement"))),
		key("skipReason", text),
		key("operations", listOf(reference("operation"))).required(),
		key("expectEvents", someOf(reference("expectedEventsForClient"))),
		key("expectLogMessages", someOf(reference("expectedLogMessagesForClient"))).since(13),
		key("expectTracingMessages", someOf(reference("expectedTracingMessagesForClient"))).since(27),
		key("outcome", someOf(reference("collectionData"))),
	),
	"operation": objectOf("an operation",
		key("name", text).required(),
		key("object", text).required(),
		key("arguments", document()),
		key("ignoreResultAndError", boolean).since(3),
		key("expectError", reference("expectedError")),
		key("expectResult", anything{}),
		key("saveResultAsEntity", text),
	).notBoth("expectError", "expectResult", "saveResultAsEntity").
		notBoth("ignoreResultAndError", "expectResult", "expectError", "saveResultAsEntity").
		dependsOn(arguments),
	"expectedError": nonEmpty("an expectedError",
		key("isError", always("an operation without expectError must succeed anyway")),
		key("isClientError", boolean),
		key("isTimeoutError", boolean).since(9),
		key("errorContains", text),
		key("errorCode", integer),
		key("errorCodeName", text),
		key("errorLabelsContain", someOf(text)),
		key("errorLabelsOmit", someOf(text)),
		key("errorResponse", document()).since(12),
		key("writeErrors", document()).since(21),
		key("writeConcernErrors", listOf(document())).since(21),
		key("expectResult", anything{}),
	),

	"expectedEventsForClient": objectOf("an expectedEventsForClient",
		key("client", text).required(),
		key("eventType", oneOf("command", "cmap").since(10, "sdam")).since(3),
		key("events", listOf(anything{})).required(),
		key("ignoreExtraEvents", boolean).since(7),
	).dependsOn(dependency{key: "events", sibling: "eventType", absent: "command", shapes: map[string]shape{
		"command": listOf(reference("expectedCommandEvent")),
		"cmap":    listOf(reference("expectedCmapEvent")),
		"sdam":    listOf(reference("expectedSdamEvent")),
	}}),
	"expectedCommandEvent": choiceOf("an expected event of type command",
		commandEvent("commandStartedEvent", 0, key("command", document())),
		commandEvent("commandSucceededEvent", 15, key("reply", document())),
		commandEvent("commandFailedEvent", 15),
	),
	"expectedCmapEvent": choiceOf("an expected event of type cmap",
		event("poolCreatedEvent"),
		event("poolReadyEvent"),
		event("poolClearedEvent", key("hasServiceId", boolean), key("interruptInUseConnections", boolean).since(11)),
		event("poolClosedEvent"),
		event("connectionCreatedEvent"),
		event("connectionReadyEvent"),
		event("connectionClosedEvent", key("reason", text)),
		event("connectionCheckOutStartedEvent"),
		event("connectionCheckOutFailedEvent", key("reason", text)),
		event("connectionCheckedOutEvent"),
		event("connectionCheckedInEvent"),
	),
	"expectedSdamEvent": choiceOf("an expected event of type sdam",
		event("serverDescriptionChangedEvent",
			key("previousDescription", reference("serverDescription")),
			key("newDescription", reference("serverDescription")),
		),
		event("topologyDescriptionChangedEvent",
			key("previousDescription", reference("topologyDescription")).since(20),
			key("newDescription", reference("topologyDescription")).since(20),
		).since(14),
		event("serverHeartbeatStartedEvent", key("awaited", boolean)).since(17),
		event("serverHeartbeatSucceededEvent", key("awaited", boolean)).since(17),
		event("serverHeartbeatFailedEvent", key("awaited", boolean)).since(17),
		event("topologyOpeningEvent").since(20),
		event("topologyClosedEvent").since(20),
	),
	"serverDescription": objectOf("a server description",
		key("type", oneOf("Standalone", "Mongos", "PossiblePrimary", "RSPrimary", "RSSecondary",
			"RSOther", "RSArbiter", "RSGhost", "LoadBalancer", "Unknown")),
	),
	"topologyDescription": objectOf("a topology description", key("type", topologyType)),

	"expectedLogMessagesForClient": objectOf("an expectedLogMessagesForClient",
		key("client", text).required(),
		key("messages", listOf(reference("expectedLogMessage"))).required(),
		key("ignoreMessages", listOf(reference("expectedLogMessage"))).since(16),
		key("ignoreExtraMessages", boolean).since(16),
	),
	"expectedLogMessage": objectOf("an expectedLogMessage",
		key("level", reference("logSeverityLevel")).required(),
		key("component", oneOf("command", "topology", "serverSelection", "connection")).required(),
		key("data", document()).required(),
		key("failureIsRedacted", boolean),
	),
	"logSeverityLevel": oneOf("emergency", "alert", "critical", "error", "warning", "notice",
		"info", "debug", "trace"),

	"expectedTracingMessagesForClient": objectOf("an expectedTracingMessagesForClient",
		key("client", text).required(),
		key("ignoreExtraSpans", boolean),
		key("spans", someOf(reference("span"))).required(),
	),
	"span": objectOf("a span",
		key("name", text).required(),
		key("attributes", document()).required(),
		key("nested", someOf(reference("span"))),
	),
}

// topologyType is "TopologyType" of Server Discovery and Monitoring.
var topologyType = oneOf("Single", "Unknown", "ReplicaSetNoPrimary", "ReplicaSetWithPrimary", "Sharded", "LoadBalanced")

func entity(name, parent string, keys ...field) field {
	keys = append([]field{key("id", text).required(), key(parent, text).required()}, keys...)
	return key(name, objectOf("a "+name+" entity", keys...))
}

// commandEvent is the key of an expected command event, whose databaseName a minor version introduced.
func commandEvent(name string, databaseName int, keys ...field) field {
	return event(name, append(keys,
		key("commandName", text),
		key("databaseName", text).since(databaseName),
		key("hasServiceId", boolean).since(3),
		key("hasServerConnectionId", boolean).since(6))...)
}

func event(name string, keys ...field) field { return key(name, objectOf("a "+name, keys...)) }

// provider is the key of a KMS provider with its credentials. An accessToken, since 1.28, replaces the
// credentials listed before it.
func provider(name, article string, credentials ...string) field {
	o := objectOf(article + " KMS provider")
	for i, c := range credentials {
		k := key(c, reference("credential"))
		if c == "accessToken" {
			k = k.since(28)
			o = o.notBoth(c, credentials[:i]...)
		}
		o.fields = append(o.fields, k)
	}
	return key(name, o).labelledSince(18)
}
