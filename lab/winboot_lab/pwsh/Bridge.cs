// What a lab machine needs of a real PowerShell: a runspace for each run, and a wire to the lab. The engine's own Add-Type
// compiles it together with the stand-ins of stand_ins.py. C# 5, which is what Windows PowerShell 5.1 compiles.
//
// The wire is one connection a run, one JSON text a line. The lab says {"run": …}; until the last line ({"ended": …}) this side
// asks, and the lab answers each question in its turn; {"out": …} and {"stream": …} want no answer.
using global::System;
using global::System.Collections;
using global::System.Collections.Generic;
using global::System.Globalization;
using global::System.IO;
using global::System.Management.Automation;
using global::System.Management.Automation.Host;
using global::System.Management.Automation.Language;
using global::System.Management.Automation.Runspaces;
using global::System.Net;
using global::System.Net.Sockets;
using global::System.Reflection;
using global::System.Reflection.Emit;
using global::System.Runtime.InteropServices;
using global::System.Security;
using global::System.Text;
using global::System.Threading;

namespace Lab
{
    public sealed class Tag { public static readonly Tag Any = new Tag(); }

    // An object that lives in the lab. Its members ask there.
    public abstract class Kept
    {
        internal long Handle;
        protected Kept() { }
        protected Kept(Tag tag) { }
        public override string ToString() { return (string)Wire.Now.Ask("text", Handle, null, 0, new object[0]); }
        public override bool Equals(object other)
        {
            Kept kept = other as Kept;
            return kept != null && (kept.Handle == Handle || (bool)Wire.Now.Ask("same", Handle, null, 0, new object[] { kept }));
        }
        public override int GetHashCode() { return GetType().GetHashCode(); }
    }

    // A kept object of a type that no stand-in was made for (tasks): whatever it is asked, the lab answers or refuses.
    public sealed class Loose : System.Dynamic.DynamicObject
    {
        internal readonly long Handle;
        // A task that reads fills these when it is done.
        internal byte[][] Buffers = new byte[0][];
        internal Loose(long handle) { Handle = handle; }
        public override bool TryGetMember(System.Dynamic.GetMemberBinder binder, out object result)
        {
            result = Wire.Now.Ask("read", this, binder.Name, 0, new object[0]);
            return true;
        }
        public override bool TryInvokeMember(System.Dynamic.InvokeMemberBinder binder, object[] args, out object result)
        {
            result = Wire.Now.Ask("invoke", this, binder.Name, 0, args);
            return true;
        }
    }

    // An object that a command of the machine gave: its properties are note properties around it.
    public class Thing
    {
        public string Kind;
        public string Key;
        public string Text;
        public override string ToString() { return Text == null ? Kind : Text; }
        protected object Do(string member, params object[] arguments)
        {
            object[] answer = (object[])Wire.Now.Ask("object", PSObject.AsPSObject(this), member, 0, arguments);
            PSObject mine = PSObject.AsPSObject(this);
            foreach (PSPropertyInfo property in ((PSObject)answer[1]).Properties)
            {
                if (mine.Properties[property.Name] == null) { mine.Properties.Add(new PSNoteProperty(property.Name, property.Value)); }
                else { mine.Properties[property.Name].Value = property.Value; }
            }
            return answer[0];
        }
    }

    public sealed class ServiceThing : Thing
    {
        public void Start() { Do("Start"); }
        public void Start(string[] args) { Do("Start", new object[] { args }); }
        public void Stop() { Do("Stop"); }
        public void Refresh() { Do("Refresh"); }
        public void Close() { Do("Close"); }
        public void Dispose() { Do("Dispose"); }
        public void WaitForStatus(object desiredStatus) { Do("WaitForStatus", desiredStatus); }
        public void WaitForStatus(object desiredStatus, TimeSpan timeout) { Do("WaitForStatus", desiredStatus, timeout); }
    }

    public sealed class ProcessThing : Thing
    {
        public void Kill() { Do("Kill"); }
        public void WaitForExit() { Do("WaitForExit"); }
        public bool WaitForExit(int milliseconds) { return (bool)Do("WaitForExit", milliseconds); }
        public void Refresh() { Do("Refresh"); }
        public void Close() { Do("Close"); }
        public void Dispose() { Do("Dispose"); }
    }

    // The machine's commands that are cmdlets; stand_ins.py makes one class for each.
    public abstract class MachineCmdlet : PSCmdlet
    {
        protected override void ProcessRecord() { Wire.Command(MyInvocation.MyCommand.Name, MyInvocation.BoundParameters, this); }
    }

    // [DateTime]: its clock is the machine's. The engine lets no constructor give an object of another type, so what [DateTime]::new()
    // makes is one of these; whatever it is asked for is a real DateTime.
    public sealed class Moment : IComparable
    {
        internal readonly DateTime Value;
        public Moment(long ticks) { Value = new DateTime(ticks); }
        public Moment(long ticks, DateTimeKind kind) { Value = new DateTime(ticks, kind); }
        public Moment(int year, int month, int day) { Value = new DateTime(year, month, day); }
        public Moment(int year, int month, int day, int hour, int minute, int second) { Value = new DateTime(year, month, day, hour, minute, second); }
        public Moment(int year, int month, int day, int hour, int minute, int second, DateTimeKind kind) { Value = new DateTime(year, month, day, hour, minute, second, kind); }
        public static implicit operator DateTime(Moment moment) { return moment.Value; }
        public int CompareTo(object other) { return Value.CompareTo(other is Moment ? ((Moment)other).Value : (DateTime)other); }
        public override string ToString() { return Value.ToString(CultureInfo.InvariantCulture); }
        public string ToString(string format) { return Value.ToString(format); }
        public string ToString(string format, IFormatProvider provider) { return Value.ToString(format, provider); }
        public long Ticks { get { return Value.Ticks; } }
        public DateTimeKind Kind { get { return Value.Kind; } }
        public DateTime AddSeconds(double value) { return Value.AddSeconds(value); }
        public DateTime AddMinutes(double value) { return Value.AddMinutes(value); }
        public DateTime AddDays(double value) { return Value.AddDays(value); }
        public DateTime ToUniversalTime() { return Value.ToUniversalTime(); }
        public DateTime ToLocalTime() { return Value.ToLocalTime(); }
        public static DateTime UtcNow { get { return (DateTime)Wire.Now.Ask("get", "System.DateTime", "UtcNow", 0, new object[0]); } }
        public static DateTime Now { get { return (DateTime)Wire.Now.Ask("get", "System.DateTime", "Now", 0, new object[0]); } }
        public static DateTime Today { get { return Now.Date; } }
        public static readonly DateTime MinValue = DateTime.MinValue;
        public static readonly DateTime MaxValue = DateTime.MaxValue;
        public static DateTime Parse(string s) { return DateTime.Parse(s); }
        public static DateTime Parse(string s, IFormatProvider provider) { return DateTime.Parse(s, provider); }
        public static DateTime Parse(string s, IFormatProvider provider, DateTimeStyles styles) { return DateTime.Parse(s, provider, styles); }
        public static DateTime ParseExact(string s, string format, IFormatProvider provider) { return DateTime.ParseExact(s, format, provider); }
        public static DateTime ParseExact(string s, string format, IFormatProvider provider, DateTimeStyles style) { return DateTime.ParseExact(s, format, provider, style); }
        public static bool TryParse(string s, ref DateTime result) { return DateTime.TryParse(s, out result); }
        public static bool TryParse(string s, IFormatProvider provider, DateTimeStyles styles, ref DateTime result) { return DateTime.TryParse(s, provider, styles, out result); }
        public static bool TryParseExact(string s, string format, IFormatProvider provider, DateTimeStyles style, ref DateTime result) { return DateTime.TryParseExact(s, format, provider, style, out result); }
        public static DateTime FromFileTimeUtc(long fileTime) { return DateTime.FromFileTimeUtc(fileTime); }
        public static DateTime SpecifyKind(DateTime value, DateTimeKind kind) { return DateTime.SpecifyKind(value, kind); }
    }

    // $env: of the machine's process. Only reading and writing by name: scripts use no more.
    [System.Management.Automation.Provider.CmdletProvider("Environment", System.Management.Automation.Provider.ProviderCapabilities.None)]
    public sealed class MachineEnvironment : System.Management.Automation.Provider.ContainerCmdletProvider, System.Management.Automation.Provider.IContentCmdletProvider
    {
        protected override global::System.Collections.ObjectModel.Collection<PSDriveInfo> InitializeDefaultDrives()
        {
            global::System.Collections.ObjectModel.Collection<PSDriveInfo> drives = new global::System.Collections.ObjectModel.Collection<PSDriveInfo>();
            drives.Add(new PSDriveInfo("Env", ProviderInfo, "", "", null));
            return drives;
        }
        protected override bool IsValidPath(string path) { return !string.IsNullOrEmpty(path); }
        protected override bool ItemExists(string path) { return Read(path) != null; }
        protected override void GetItem(string path) { string value = Read(path); if (value != null) { WriteItemObject(value, path, false); } }
        public System.Management.Automation.Provider.IContentReader GetContentReader(string path) { return new Reader(Read(path)); }
        public object GetContentReaderDynamicParameters(string path) { return null; }
        public System.Management.Automation.Provider.IContentWriter GetContentWriter(string path) { return new Writer(Name(path)); }
        public object GetContentWriterDynamicParameters(string path) { return null; }
        public void ClearContent(string path) { Write(Name(path), null); }
        public object ClearContentDynamicParameters(string path) { return null; }
        internal static string Name(string path) { return path.TrimStart('\\', '/'); }
        internal static string Read(string path)
        {
            object[] found = Wire.Now.Primitive("environment.get", "name", Name(path));
            return found.Length == 0 ? null : (string)found[0];
        }
        internal static void Write(string name, string value) { Wire.Now.Primitive("environment.set", "name", name, "value", value); }

        sealed class Reader : System.Management.Automation.Provider.IContentReader
        {
            string value;
            public Reader(string text) { value = text; }
            public IList Read(long readCount)
            {
                ArrayList found = new ArrayList();
                if (value != null) { found.Add(value); value = null; }
                return found;
            }
            public void Seek(long offset, SeekOrigin origin) { }
            public void Close() { }
            public void Dispose() { }
        }

        sealed class Writer : System.Management.Automation.Provider.IContentWriter
        {
            readonly string name;
            public Writer(string of) { name = of; }
            public IList Write(IList content)
            {
                object first = content.Count == 0 ? null : content[0];
                MachineEnvironment.Write(name, first == null ? null : first.ToString());
                return content;
            }
            public void Seek(long offset, SeekOrigin origin) { }
            public void Close() { }
            public void Dispose() { }
        }
    }

    public sealed class Screen : PSHost
    {
        public int? Code;
        readonly Guid id = Guid.NewGuid();
        public override string Name { get { return "ServerRemoteHost"; } }
        public override Version Version { get { return new Version(5, 1, 20348, 2227); } }
        public override Guid InstanceId { get { return id; } }
        public override PSHostUserInterface UI { get { return null; } }
        public override CultureInfo CurrentCulture { get { return CultureInfo.GetCultureInfo("en-US"); } }
        public override CultureInfo CurrentUICulture { get { return CultureInfo.GetCultureInfo("en-US"); } }
        public override void EnterNestedPrompt() { throw new NotSupportedException(); }
        public override void ExitNestedPrompt() { throw new NotSupportedException(); }
        public override void NotifyBeginApplication() { }
        public override void NotifyEndApplication() { }
        public override void SetShouldExit(int exitCode) { Code = exitCode; }
    }

    public sealed class Wire
    {
        [ThreadStatic] public static Wire Now;
        readonly TextReader reader;
        readonly TextWriter writer;
        PowerShell shell;
        bool over;

        Wire(Stream stream)
        {
            reader = new StreamReader(stream, new UTF8Encoding(false), false, 65536);
            writer = new StreamWriter(stream, new UTF8Encoding(false), 65536);
            writer.NewLine = "\n";
        }

        // -- the process

        public static void Serve(string folder)
        {
            Enter(File.ReadAllLines(Path.Combine(folder, "names.txt")), File.ReadAllLines(Path.Combine(folder, "gone.txt")));
            string secret = File.ReadAllText(Path.Combine(folder, "secret.txt"));
            TcpListener listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start();
            Console.Out.WriteLine("listening " + ((IPEndPoint)listener.LocalEndpoint).Port.ToString(CultureInfo.InvariantCulture));
            Console.Out.Flush();
            // Whoever started us holds our standard input open: its end is ours.
            Thread watch = new Thread(delegate() { Console.In.ReadToEnd(); Environment.Exit(0); });
            watch.IsBackground = true;
            watch.Start();
            while (true)
            {
                TcpClient client = listener.AcceptTcpClient();
                client.NoDelay = true;
                Thread run = new Thread(delegate() { Receive(client, secret); }, 64 * 1024 * 1024);
                run.IsBackground = true;
                run.Start();
            }
        }

        static readonly Dictionary<string, Type> types = new Dictionary<string, Type>(StringComparer.OrdinalIgnoreCase);

        static void Enter(string[] names, string[] builtIn)
        {
            // Of PowerShell's two tables of short names the built-in one comes before the types of assemblies, the other one behind
            // (TypeResolver.ResolveTypeNameWorker).
            Type table = typeof(PSObject).Assembly.GetType("System.Management.Automation.TypeAccelerators");
            FieldInfo own = table.GetField("builtinTypeAccelerators", BindingFlags.NonPublic | BindingFlags.Static);
            Dictionary<string, Type> first = (Dictionary<string, Type>)own.GetValue(null);
            foreach (string name in builtIn) { first.Remove(name); }
            foreach (string name in names)
            {
                Type type = typeof(Wire).Assembly.GetType("Stand." + name, true);
                types[name] = type;
                first[name] = type;
                if (name.StartsWith("System.")) { first[name.Substring(7)] = type; }
            }
            first["datetime"] = typeof(Moment);
            first["System.DateTime"] = typeof(Moment);
        }

        static void Receive(TcpClient client, string secret)
        {
            using (client)
            {
                Wire wire = new Wire(client.GetStream());
                try
                {
                    if (wire.reader.ReadLine() != secret) { return; }
                    Now = wire;
                    wire.Run((IDictionary)Json.Read(wire.reader.ReadLine()));
                }
                catch (IOException) { } // the other side is gone
                catch (Exception failure)
                {
                    // What leaves a thread uncaught would end the process, and with it everybody's runs.
                    wire.Send(Tagged("broken", failure.ToString(), null, null));
                }
            }
        }

        // -- one run

        void Run(IDictionary order)
        {
            Screen screen = new Screen();
            InitialSessionState state = InitialSessionState.CreateDefault2();
            state.LanguageMode = PSLanguageMode.FullLanguage;
            state.Providers.Remove("Environment", null);
            state.Providers.Add(new SessionStateProviderEntry("Environment", typeof(MachineEnvironment), null));
            foreach (Type type in typeof(Wire).Assembly.GetTypes())
            {
                if (!type.IsSubclassOf(typeof(MachineCmdlet))) { continue; }
                CmdletAttribute named = (CmdletAttribute)type.GetCustomAttributes(typeof(CmdletAttribute), false)[0];
                string name = named.VerbName + "-" + named.NounName;
                if (Array.IndexOf((object[])order["cmdlets"], name) < 0) { continue; }
                state.Commands.Remove(name, null);
                state.Commands.Add(new SessionStateCmdletEntry(name, type, null));
            }
            using (Runspace space = Open(state, screen, (string)order["functions"]))
            {
                using (shell = PowerShell.Create())
                {
                    shell.Runspace = space;
                    shell.AddScript((string)order["text"], (bool)order["local"]);
                    foreach (DictionaryEntry given in (IDictionary)From(order["parameters"])) { shell.AddParameter((string)given.Key, given.Value); }
                    shell.Streams.Error.DataAdded += delegate(object from, DataAddedEventArgs at) { Tell("error", shell.Streams.Error[at.Index]); };
                    shell.Streams.Warning.DataAdded += delegate(object from, DataAddedEventArgs at) { Tell("warning", shell.Streams.Warning[at.Index].Message); };
                    shell.Streams.Verbose.DataAdded += delegate(object from, DataAddedEventArgs at) { Tell("verbose", shell.Streams.Verbose[at.Index].Message); };
                    shell.Streams.Debug.DataAdded += delegate(object from, DataAddedEventArgs at) { Tell("debug", shell.Streams.Debug[at.Index].Message); };
                    shell.Streams.Information.DataAdded += delegate(object from, DataAddedEventArgs at) { Tell("information", shell.Streams.Information[at.Index].ToString()); };
                    PSDataCollection<PSObject> output = new PSDataCollection<PSObject>();
                    output.DataAdded += delegate(object from, DataAddedEventArgs at) { Tell("output", output[at.Index]); };
                    Hashtable ended = new Hashtable();
                    ended["state"] = "completed";
                    try { shell.Invoke(null, output, null); }
                    catch (PipelineStoppedException) { ended["state"] = "stopped"; }
                    catch (RuntimeException failure)
                    {
                        ended["state"] = "failed";
                        ended["error"] = To(failure.ErrorRecord);
                    }
                    ended["code"] = screen.Code.HasValue ? (object)screen.Code.Value : null;
                    Hashtable last = new Hashtable();
                    last["ended"] = ended;
                    Send(last);
                }
            }
        }

        Runspace Open(InitialSessionState state, Screen screen, string functions)
        {
            Runspace space = RunspaceFactory.CreateRunspace(screen, state);
            space.ThreadOptions = PSThreadOptions.UseCurrentThread;
            space.Open();
            Runspace.DefaultRunspace = space;
            space.SessionStateProxy.InvokeCommand.PreCommandLookupAction = LookUp;
            using (PowerShell prepare = PowerShell.Create())
            {
                prepare.Runspace = space;
                prepare.AddScript(functions, false);
                prepare.Invoke();
                if (prepare.Streams.Error.Count > 0) { throw new InvalidOperationException(prepare.Streams.Error[0].ToString()); }
            }
            return space;
        }

        // A script file of the machine, called by its path.
        void LookUp(object sender, CommandLookupEventArgs found)
        {
            string name = found.CommandName;
            if (name.Length < 4 || name[1] != ':' || name[2] != '\\') { return; }
            if (name.EndsWith(".ps1", StringComparison.OrdinalIgnoreCase))
            {
                string text = (string)Ask("script", name, null, 0, new object[0]);
                if (text == null) { return; }
                Token[] tokens;
                ParseError[] errors;
                ScriptBlockAst tree = Parser.ParseInput(text, name, out tokens, out errors);
                if (errors.Length > 0) { throw new ParseException(errors); }
                found.CommandScriptBlock = tree.GetScriptBlock();
                found.StopSearch = true;
            }
        }

        void Tell(string stream, object value)
        {
            if (over) { return; }
            Hashtable message = new Hashtable();
            message["stream"] = stream;
            message["value"] = To(value);
            Send(message);
        }

        // -- asking

        public object Ask(string kind, object target, string member, int overload, object[] arguments)
        {
            if (over) { throw new PipelineStoppedException(); }
            Hashtable question = new Hashtable();
            question["ask"] = kind;
            question["on"] = To(target);
            question["member"] = member;
            question["overload"] = overload;
            ArrayList given = new ArrayList();
            foreach (object argument in arguments) { given.Add(To(argument)); }
            question["arguments"] = given;
            IDictionary answer = Exchange(question);
            IDictionary changed = answer["changed"] as IDictionary;
            if (changed != null)
            {
                foreach (DictionaryEntry one in changed)
                {
                    int place = int.Parse((string)one.Key, CultureInfo.InvariantCulture);
                    object now = From(one.Value);
                    byte[] bytes = now as byte[];
                    if (bytes != null && arguments[place] is byte[]) { Buffer.BlockCopy(bytes, 0, (byte[])arguments[place], 0, bytes.Length); }
                    else { arguments[place] = now; }
                }
            }
            Loose asked = target as Loose;
            if (asked != null && answer["buffers"] != null)
            {
                object[] filled = (object[])answer["buffers"];
                for (int place = 0; place < filled.Length; place++)
                {
                    byte[] bytes = Convert.FromBase64String((string)filled[place]);
                    Buffer.BlockCopy(bytes, 0, asked.Buffers[place], 0, bytes.Length);
                }
            }
            object found = From(answer["value"]);
            Loose task = found as Loose;
            if (task != null)
            {
                List<byte[]> buffers = new List<byte[]>();
                foreach (object argument in arguments) { if (argument is byte[]) { buffers.Add((byte[])argument); } }
                task.Buffers = buffers.ToArray();
            }
            return found;
        }

        IDictionary Exchange(object question)
        {
            Send(question);
            string line = reader.ReadLine();
            if (line == null) { Stop(); }
            IDictionary answer = (IDictionary)Json.Read(line);
            if (answer.Contains("stop")) { Stop(); }
            if (answer.Contains("throw")) { throw Failure((IDictionary)answer["throw"]); }
            return answer;
        }

        // The lab refused, or the machine is down: no script may see that.
        void Stop()
        {
            over = true;
            shell.BeginStop(null, null);
            throw new PipelineStoppedException();
        }

        public object[] Primitive(string name, params object[] pairs)
        {
            Hashtable given = new Hashtable();
            for (int place = 0; place < pairs.Length; place += 2) { given[pairs[place]] = pairs[place + 1]; }
            return (object[])Ask("primitive", name, null, 0, new object[] { given });
        }

        public static void Command(string name, IDictionary bound, PSCmdlet cmdlet)
        {
            Hashtable given = new Hashtable();
            foreach (DictionaryEntry one in bound) { given[one.Key] = one.Value; }
            if (cmdlet.MyInvocation.BoundParameters.ContainsKey("WhatIf")) { given["WhatIf"] = true; }
            Hashtable question = new Hashtable();
            question["ask"] = "command";
            question["on"] = name;
            question["arguments"] = new ArrayList(new object[] { To(given) });
            IDictionary answer = Now.Exchange(question);
            foreach (object warning in (IEnumerable)answer["warnings"]) { cmdlet.WriteWarning((string)warning); }
            foreach (object made in (IEnumerable)answer["objects"]) { cmdlet.WriteObject(From(made), false); }
            foreach (object problem in (IEnumerable)answer["errors"])
            {
                IDictionary facts = (IDictionary)problem;
                string id = (string)facts["id"];
                int comma = id.LastIndexOf(',');
                ErrorCategory category = (ErrorCategory)Enum.Parse(typeof(ErrorCategory), (string)facts["category"]);
                ErrorRecord record = new ErrorRecord(Failure((IDictionary)facts["exception"]), comma < 0 ? id : id.Substring(0, comma), category, From(facts["target"]));
                if ((bool)facts["terminating"]) { cmdlet.ThrowTerminatingError(record); }
                cmdlet.WriteError(record);
            }
        }

        void Send(object message)
        {
            StringBuilder text = new StringBuilder();
            Json.Write(text, message);
            writer.WriteLine(text.ToString());
            writer.Flush();
        }

        static Exception Failure(IDictionary facts)
        {
            string name = (string)facts["type"];
            string message = (string)facts["message"];
            Exception inner = facts["inner"] == null ? null : Failure((IDictionary)facts["inner"]);
            Type type = Find(name);
            Exception made = null;
            if (type != null && typeof(Exception).IsAssignableFrom(type))
            {
                ConstructorInfo full = type.GetConstructor(new Type[] { typeof(string), typeof(Exception) });
                ConstructorInfo bare = type.GetConstructor(new Type[] { typeof(string) });
                if (full != null) { made = (Exception)full.Invoke(new object[] { message, inner }); }
                else if (bare != null) { made = (Exception)bare.Invoke(new object[] { message }); }
                if (type == typeof(SocketException) && facts["code"] != null) { made = new Spoken((int)facts["code"], message); }
                else if (type == typeof(System.ComponentModel.Win32Exception) && facts["code"] != null) { made = new System.ComponentModel.Win32Exception((int)facts["code"], message); }
                else if (type == typeof(WebException)) { made = new Answered(message, inner, (WebExceptionStatus)Enum.Parse(typeof(WebExceptionStatus), (string)facts["status"]), From(facts["response"])); }
            }
            if (made == null) { made = new Exception(message, inner); }
            if (facts["hresult"] != null)
            {
                PropertyInfo number = typeof(Exception).GetProperty("HResult");
                number.SetValue(made, unchecked((int)long.Parse((string)facts["hresult"], CultureInfo.InvariantCulture)), null);
            }
            return made;
        }

        // The real one's Response takes no stand-in.
        public sealed class Answered : WebException
        {
            readonly object response;
            public Answered(string said, Exception inner, WebExceptionStatus status, object answer) : base(said, inner, status, null) { response = answer; }
            public new object Response { get { return response; } }
        }

        sealed class Spoken : SocketException
        {
            readonly string message;
            public Spoken(int code, string said) : base(code) { message = said; }
            public override string Message { get { return message; } }
        }

        // -- values to the lab

        public static object To(object value)
        {
            PSObject wrapped = value as PSObject;
            if (wrapped != null)
            {
                if (wrapped.BaseObject is PSCustomObject) { return Tagged("o", Properties(wrapped), "n", wrapped.TypeNames[0]); }
                Thing thing = wrapped.BaseObject as Thing;
                if (thing != null)
                {
                    Hashtable made = Tagged("m", thing.Kind, "o", Properties(wrapped));
                    made["hd"] = thing.Key;
                    made["x"] = thing.Text;
                    return made;
                }
                value = wrapped.BaseObject;
            }
            if (value == null || value == System.Management.Automation.Internal.AutomationNull.Value) { return null; }
            if (value is Thing) { return To(PSObject.AsPSObject(value)); }
            if (value is string || value is bool || value is int) { return value; }
            if (value is char || value is decimal) { return Tagged("t", value.GetType().FullName, "v", Convert.ToString(value, CultureInfo.InvariantCulture)); }
            if (value is Enum)
            {
                Type type = value.GetType();
                string name = type.FullName.StartsWith("Stand.") ? type.FullName.Substring(6) : type.FullName;
                Hashtable made = Tagged("e", name, "v", Convert.ToString(Convert.ChangeType(value, Enum.GetUnderlyingType(type), CultureInfo.InvariantCulture), CultureInfo.InvariantCulture));
                made["s"] = value.ToString();
                return made;
            }
            if (value is double || value is float) { return Tagged("t", value.GetType().FullName, "v", ((IFormattable)value).ToString("R", CultureInfo.InvariantCulture)); }
            if (value.GetType().IsPrimitive) { return Tagged("t", value.GetType().FullName, "v", Convert.ToString(value, CultureInfo.InvariantCulture)); }
            if (value is Moment) { value = ((Moment)value).Value; }
            if (value is DateTime) { return Tagged("dt", ((DateTime)value).Ticks.ToString(CultureInfo.InvariantCulture), "k", (int)((DateTime)value).Kind); }
            if (value is TimeSpan) { return Tagged("ts", ((TimeSpan)value).Ticks.ToString(CultureInfo.InvariantCulture), null, null); }
            if (value is byte[]) { return Tagged("b", Convert.ToBase64String((byte[])value), null, null); }
            if (value is Kept) { return Tagged("i", ((Kept)value).Handle.ToString(CultureInfo.InvariantCulture), null, null); }
            if (value is Loose) { return Tagged("i", ((Loose)value).Handle.ToString(CultureInfo.InvariantCulture), null, null); }
            if (value is SwitchParameter) { return ((SwitchParameter)value).IsPresent; }
            if (value is Guid || value is Version || value is Uri || value is IPAddress) { return Tagged("p", value.GetType().FullName, "v", value.ToString()); }
            if (value is Encoding) { return Tagged("enc", ((Encoding)value).CodePage, "bom", ((Encoding)value).GetPreamble().Length > 0); }
            if (value is SecureString)
            {
                IntPtr place = Marshal.SecureStringToGlobalAllocUnicode((SecureString)value);
                try { return Tagged("ss", Marshal.PtrToStringUni(place), null, null); }
                finally { Marshal.ZeroFreeGlobalAllocUnicode(place); }
            }
            if (value is Type)
            {
                string name = ((Type)value).FullName;
                return Tagged("type", name.StartsWith("Stand.") ? name.Substring(6) : name, null, null);
            }
            ErrorRecord record = value as ErrorRecord;
            if (record != null)
            {
                Hashtable made = Tagged("er", record.FullyQualifiedErrorId, "category", record.CategoryInfo.Category.ToString());
                made["details"] = record.ErrorDetails == null ? null : record.ErrorDetails.Message;
                made["exception"] = To(record.Exception);
                made["stack"] = record.ScriptStackTrace;
                return made;
            }
            Exception failure = value as Exception;
            if (failure != null)
            {
                Hashtable made = Tagged("ex", failure.GetType().FullName, "message", failure.Message);
                made["inner"] = To(failure.InnerException);
                made["hresult"] = Marshal.GetHRForException(failure);
                return made;
            }
            IDictionary table = value as IDictionary;
            if (table != null)
            {
                ArrayList pairs = new ArrayList();
                foreach (DictionaryEntry entry in table) { pairs.Add(new object[] { To(entry.Key), To(entry.Value) }); }
                return Tagged("h", pairs, null, null);
            }
            if (value is ScriptBlock || value is CultureInfo) { return Tagged("s", value.ToString(), "t", value.GetType().FullName); }
            IEnumerable items = value as IEnumerable;
            if (items != null)
            {
                ArrayList list = new ArrayList();
                foreach (object item in items) { list.Add(To(item)); }
                string element = value.GetType().IsArray ? value.GetType().GetElementType().FullName : "System.Object";
                return Tagged("a", list, "t", element.StartsWith("Stand.") ? element.Substring(6) : element);
            }
            return Tagged("s", value.ToString(), "t", value.GetType().FullName);
        }

        static ArrayList Properties(PSObject value)
        {
            ArrayList pairs = new ArrayList();
            foreach (PSPropertyInfo property in value.Properties)
            {
                if (property.MemberType == PSMemberTypes.NoteProperty) { pairs.Add(new object[] { property.Name, To(property.Value) }); }
            }
            return pairs;
        }

        static Hashtable Tagged(string tag, object value, string other, object more)
        {
            Hashtable made = new Hashtable();
            made[tag] = value;
            if (other != null) { made[other] = more; }
            return made;
        }

        // -- values from the lab

        public static object From(object value)
        {
            IDictionary facts = value as IDictionary;
            if (facts == null) { return value; }
            if (facts.Contains("m") || facts.Contains("o"))
            {
                PSObject made;
                if (facts.Contains("m"))
                {
                    string kind = (string)facts["m"];
                    Thing thing = kind == "System.ServiceProcess.ServiceController" ? new ServiceThing()
                        : kind == "System.Diagnostics.Process" ? (Thing)new ProcessThing() : new Thing();
                    thing.Kind = kind;
                    thing.Key = (string)facts["hd"];
                    thing.Text = (string)facts["x"];
                    made = PSObject.AsPSObject(thing);
                    made.TypeNames.Insert(0, kind);
                }
                else { made = new PSObject(); }
                foreach (object pair in (IEnumerable)facts["o"])
                {
                    IList two = (IList)pair;
                    made.Properties.Add(new PSNoteProperty((string)two[0], From(two[1])), true);
                }
                return made;
            }
            if (facts.Contains("e")) { return Constant((string)facts["e"], Convert.ToInt64(facts["v"], CultureInfo.InvariantCulture), (string)facts["s"], facts["flags"] != null); }
            if (facts.Contains("b")) { return Convert.FromBase64String((string)facts["b"]); }
            if (facts.Contains("dt")) { return new DateTime(long.Parse((string)facts["dt"], CultureInfo.InvariantCulture), (DateTimeKind)facts["k"]); }
            if (facts.Contains("ts")) { return new TimeSpan(long.Parse((string)facts["ts"], CultureInfo.InvariantCulture)); }
            if (facts.Contains("i"))
            {
                object kept = Object(long.Parse((string)facts["i"], CultureInfo.InvariantCulture), (string)facts["t"]);
                if (!facts.Contains("more")) { return kept; }
                PSObject made = PSObject.AsPSObject(kept);
                foreach (object pair in (IEnumerable)facts["more"])
                {
                    IList two = (IList)pair;
                    made.Properties.Add(new PSNoteProperty((string)two[0], From(two[1])), true);
                }
                return made;
            }
            if (facts.Contains("a"))
            {
                IList items = (IList)facts["a"];
                Type element = Find((string)facts["t"]);
                if (element == null) { element = typeof(object); }
                Array made = Array.CreateInstance(element, items.Count);
                for (int place = 0; place < items.Count; place++)
                {
                    object item = From(items[place]);
                    made.SetValue(element == typeof(object) ? item : LanguagePrimitives.ConvertTo(item, element, CultureInfo.InvariantCulture), place);
                }
                return made;
            }
            if (facts.Contains("h"))
            {
                Hashtable made = new Hashtable(StringComparer.OrdinalIgnoreCase);
                foreach (object pair in (IEnumerable)facts["h"]) { made[From(((IList)pair)[0])] = From(((IList)pair)[1]); }
                return made;
            }
            if (facts.Contains("p")) { return LanguagePrimitives.ConvertTo(facts["v"], Find((string)facts["p"]), CultureInfo.InvariantCulture); }
            if (facts.Contains("ss"))
            {
                SecureString made = new SecureString();
                foreach (char letter in (string)facts["ss"]) { made.AppendChar(letter); }
                made.MakeReadOnly();
                return made;
            }
            if (facts.Contains("enc")) { return (int)facts["enc"] == 65001 ? new UTF8Encoding((bool)facts["bom"]) : Encoding.GetEncoding((int)facts["enc"]); }
            if (facts.Contains("type")) { return Find((string)facts["type"]); }
            if (facts.Contains("ex")) { return Failure((IDictionary)facts["ex"]); }
            if (facts.Contains("t"))
            {
                string text = (string)facts["v"];
                if ((string)facts["t"] == "System.Char") { return text[0]; }
                return Convert.ChangeType(text, Find((string)facts["t"]), CultureInfo.InvariantCulture);
            }
            throw new IOException("no such value");
        }

        static Type Find(string name)
        {
            Type found;
            if (types.TryGetValue(name, out found)) { return found; }
            if (name == "System.DateTime") { return typeof(DateTime); }
            if (name.EndsWith("[]")) { Type element = Find(name.Substring(0, name.Length - 2)); return element == null ? null : element.MakeArrayType(); }
            foreach (Assembly assembly in AppDomain.CurrentDomain.GetAssemblies())
            {
                found = assembly.GetType(name, false);
                if (found != null && found.IsPublic) { return found; }
            }
            // The engine knows assemblies that are not loaded yet.
            return LanguagePrimitives.TryConvertTo(name, out found) ? found : null;
        }

        static object Object(long handle, string name)
        {
            Type type;
            if (!types.TryGetValue(name, out type) || !type.IsSubclassOf(typeof(Kept))) { return new Loose(handle); }
            Kept made = (Kept)Activator.CreateInstance(type, BindingFlags.NonPublic | BindingFlags.Public | BindingFlags.Instance, null, new object[] { Tag.Any }, null);
            made.Handle = handle;
            return made;
        }

        // -- enums that only modules of Windows have: made as their constants are seen

        static readonly Dictionary<string, Dictionary<string, long>> seen = new Dictionary<string, Dictionary<string, long>>();
        static readonly Dictionary<string, Type> made_ = new Dictionary<string, Type>();
        static ModuleBuilder module;

        static object Constant(string name, long number, string text, bool flags)
        {
            Type type = Find(name);
            if (type != null && type.IsEnum) { return Enum.ToObject(type, number); }
            lock (seen)
            {
                Dictionary<string, long> constants;
                if (!seen.TryGetValue(name, out constants)) { constants = seen[name] = new Dictionary<string, long>(); }
                if (!constants.ContainsKey(text) && text.IndexOf(',') < 0 && !char.IsDigit(text[0]) && text[0] != '-')
                {
                    constants[text] = number;
                    made_.Remove(name);
                }
                if (!made_.TryGetValue(name, out type))
                {
                    if (module == null) { module = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Constants"), AssemblyBuilderAccess.Run).DefineDynamicModule("Constants"); }
                    EnumBuilder builder = module.DefineEnum("Seen" + seen.Count + "_" + constants.Count + "." + name, global::System.Reflection.TypeAttributes.Public, typeof(long));
                    foreach (KeyValuePair<string, long> one in constants) { builder.DefineLiteral(one.Key, one.Value); }
                    type = made_[name] = builder.CreateTypeInfo().AsType();
                }
            }
            return Enum.ToObject(type, number);
        }
    }

    // JSON, for 5.1 has no reader that keeps a text a text.
    public static class Json
    {
        public static void Write(StringBuilder to, object value)
        {
            if (value == null) { to.Append("null"); }
            else if (value is string) { WriteText(to, (string)value); }
            else if (value is bool) { to.Append((bool)value ? "true" : "false"); }
            else if (value is IDictionary)
            {
                to.Append('{');
                bool first = true;
                foreach (DictionaryEntry entry in (IDictionary)value)
                {
                    if (!first) { to.Append(','); }
                    first = false;
                    WriteText(to, (string)entry.Key);
                    to.Append(':');
                    Write(to, entry.Value);
                }
                to.Append('}');
            }
            else if (value is IEnumerable)
            {
                to.Append('[');
                bool first = true;
                foreach (object item in (IEnumerable)value)
                {
                    if (!first) { to.Append(','); }
                    first = false;
                    Write(to, item);
                }
                to.Append(']');
            }
            else { to.Append(Convert.ToString(value, CultureInfo.InvariantCulture)); }
        }

        static void WriteText(StringBuilder to, string text)
        {
            to.Append('"');
            foreach (char letter in text)
            {
                if (letter == '"' || letter == '\\') { to.Append('\\').Append(letter); }
                else if (letter < ' ' || letter > '~') { to.Append("\\u").Append(((int)letter).ToString("x4", CultureInfo.InvariantCulture)); }
                else { to.Append(letter); }
            }
            to.Append('"');
        }

        public static object Read(string text)
        {
            int at = 0;
            return Value(text, ref at);
        }

        static object Value(string text, ref int at)
        {
            char first = text[at];
            if (first == '{')
            {
                Hashtable table = new Hashtable();
                at++;
                while (text[at] != '}')
                {
                    string key = Text(text, ref at);
                    at++;
                    table[key] = Value(text, ref at);
                    if (text[at] == ',') { at++; }
                }
                at++;
                return table;
            }
            if (first == '[')
            {
                List<object> list = new List<object>();
                at++;
                while (text[at] != ']')
                {
                    list.Add(Value(text, ref at));
                    if (text[at] == ',') { at++; }
                }
                at++;
                return list.ToArray();
            }
            if (first == '"') { return Text(text, ref at); }
            if (first == 't') { at += 4; return true; }
            if (first == 'f') { at += 5; return false; }
            if (first == 'n') { at += 4; return null; }
            int from = at;
            while (at < text.Length && ",]}".IndexOf(text[at]) < 0) { at++; }
            return int.Parse(text.Substring(from, at - from), CultureInfo.InvariantCulture);
        }

        static string Text(string text, ref int at)
        {
            StringBuilder found = new StringBuilder();
            at++;
            while (text[at] != '"')
            {
                char letter = text[at++];
                if (letter == '\\')
                {
                    letter = text[at++];
                    if (letter == 'u') { letter = (char)int.Parse(text.Substring(at, 4), NumberStyles.HexNumber, CultureInfo.InvariantCulture); at += 4; }
                    else if (letter == 'n') { letter = '\n'; }
                    else if (letter == 'r') { letter = '\r'; }
                    else if (letter == 't') { letter = '\t'; }
                    else if (letter == 'b') { letter = '\b'; }
                    else if (letter == 'f') { letter = '\f'; }
                }
                found.Append(letter);
            }
            at++;
            return found.ToString();
        }
    }
}
