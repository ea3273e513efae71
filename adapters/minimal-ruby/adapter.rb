# A minimal adapter of utr: find and insertOne with the Ruby driver. It is the example in
# docs/driver/engine-protocol.md.
require "json"
require "mongo"

# Debian's version of the driver uses this function. Its version of Ruby no longer has it.
URI.define_singleton_method(:decode) { |text| URI.decode_www_form_component(text) } unless URI.respond_to?(:decode)

Mongo::Logger.logger.level = Logger::FATAL # the driver logs to standard output
$stdout.sync = true

OPERATIONS = {
  "find" => ->(c, a) { c.find(a.delete("filter")).to_a },
  "insertOne" => ->(c, a) { { "insertedId" => c.insert_one(a.delete("document")).inserted_id } }
}.freeze

# Lacks means that this adapter does not support something. The test is skipped.
class Lacks < StandardError; end

# extended converts a value to Extended JSON. Only members that contain BSON use it.
def extended(value) = value.as_extended_json

# Log contains the command events of a client.
class Log
  attr_reader :events

  def initialize = @events = []

  def started(e) = add("commandStartedEvent", e, command: extended(e.command))
  def succeeded(e) = add("commandSucceededEvent", e, reply: extended(e.reply))
  def failed(e) = add("commandFailedEvent", e, failure: { message: e.message })

  def add(type, event, more)
    @events << { sequence: @events.size + 1, type: type, address: event.address.to_s, commandName: event.command_name.to_s,
                 databaseName: event.database_name, requestId: event.request_id, **more }
  end
end

$entities = {}
$logs = {}
$closed = {}.compare_by_identity # the clusters of closed clients

def entity(id) = $entities[id] || raise(ArgumentError, "unknown entity #{id}")

def open(kind:, id:, options: {}, uri: nil, **)
  raise ArgumentError, "entity #{id} exists already" if $entities.key?(id)

  $entities[id] = case kind
                  when "client"
                    lack(options, "id", "useMultipleMongoses", "observeEvents", "ignoreCommandMonitoringEvents", "observeSensitiveCommands")
                    $logs[id] = Log.new
                    client = Mongo::Client.new(uri)
                    client.subscribe(Mongo::Monitoring::COMMAND, $logs[id])
                    client
                  when "database"
                    lack(options, "id", "client", "databaseName")
                    entity(options["client"]).use(options["databaseName"])
                  when "collection"
                    lack(options, "id", "database", "collectionName")
                    entity(options["database"])[options["collectionName"]]
                  else raise Lacks, "entity #{kind}"
                  end
  {}
end

# lack rejects unsupported options and arguments. They must not be ignored.
def lack(given, *known) = (given.keys - known).each { |name| raise Lacks, "option #{name}" }

def perform(object:, name:, arguments: {}, **)
  operation = OPERATIONS[name] || raise(Lacks, "operation #{name}")
  collection = entity(object)
  raise Mongo::Error, "the client is closed" if $closed[collection.client.cluster] # the driver would reconnect
  lack(arguments, "filter", "document")
  { value: extended(operation.call(collection, arguments)) }
end

# failure converts an error of the driver.
def failure(error)
  return { message: error.message, unsupported: error.message } if error.is_a?(Lacks)

  out = { message: error.message, client: !error.is_a?(Mongo::Error::OperationFailure) }
  out[:code] = error.message[/\((\d+)\)/, 1]&.to_i # this version of the driver has it only in the message
  out.compact
end

def close(id:)
  return {} unless entity(id).is_a?(Mongo::Client)

  $closed[entity(id).cluster] = true
  entity(id).close
  {}
end

def finish
  $entities.each_key { |id| close(id: id) }
  [$entities, $logs, $closed].each(&:clear)
  {}
end

CALLS = {
  "hello" => lambda { |**|
    { protocol: 1, name: "ruby", version: Mongo::VERSION, schemaVersion: "1.28", events: ["command"],
      operations: OPERATIONS.keys.map { |o| "collection.#{o}" } }
  },
  "begin" => ->(**) { {} },
  "open" => method(:open),
  "do" => method(:perform),
  "events" => ->(client:, after:, **) { { events: $logs.fetch(client).events.drop(after) } },
  "close" => method(:close),
  "end" => ->(**) { finish }
}.freeze

$stdin.each_line do |line|
  request = JSON.parse(line)
  id, method = request.values_at("id", "method")
  next unless id # cancel is ignored, because all calls are short

  reply = { jsonrpc: "2.0", id: id }
  begin
    call = CALLS[method]
    params = request["params"].to_h { |k, v| [k.to_sym, %w[options arguments].include?(k) ? BSON::ExtJSON.parse_obj(v) : v] }
    reply[:result] = call ? call.call(**params) : raise(NameError, "unknown call #{method}")
  rescue NameError, KeyError, ArgumentError => e
    reply[:error] = { code: -32_603, message: e.message }
  rescue StandardError => e
    reply[:result] = { error: failure(e) }
  end
  puts JSON.generate(reply)
end

exit!(true) # without waiting for threads of the driver
