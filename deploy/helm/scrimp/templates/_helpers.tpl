{{/* Name of all objects: the release's where that says scrimp. */}}
{{- define "scrimp.name" -}}
{{- if contains "scrimp" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "scrimp-%s" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "scrimp.select" -}}
app.kubernetes.io/name: scrimp
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "scrimp.labels" -}}
{{ include "scrimp.select" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "scrimp.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "scrimp.scheme" -}}
{{ if .Values.tls.secret }}https{{ else }}http{{ end }}
{{- end }}

{{- define "scrimp.claim" -}}
{{ .Values.storage.existingClaim | default (printf "%s-data" (include "scrimp.name" .)) }}
{{- end }}

{{/* engines.yaml: the values, with the way to this server and its image where they have none. */}}
{{- define "scrimp.engines" -}}
{{- $list := list }}
{{- range .Values.engines }}
{{- $e := deepCopy . }}
{{- if eq $e.kind "kubernetes" }}
{{- $with := $e.with | default dict }}
{{- if not $e.agents }}
{{- $_ := set $e "agents" (printf "%s://%s:%v" (include "scrimp.scheme" $) (include "scrimp.name" $) $.Values.service.port) }}
{{- if and $.Values.tls.secret (not $with.ca) }}{{- $_ := set $with "ca" "/etc/scrimp/tls/ca.crt" }}{{- end }}
{{- end }}
{{- if not $with.agent_image }}{{- $_ := set $with "agent_image" (include "scrimp.image" $) }}{{- end }}
{{- $_ := set $e "with" $with }}
{{- end }}
{{- $list = append $list $e }}
{{- end }}
{{- dict "engines" $list | toYaml }}
{{- end }}

{{/* "yes" where a pool of a Kubernetes engine has a queue. */}}
{{- define "scrimp.queues" -}}
{{- range .Values.engines }}{{- range (.with | default dict).pools }}{{ if .queue }}yes{{ end }}{{ end }}{{ end }}
{{- end }}

{{- define "scrimp.probe" -}}
httpGet: {path: {{ .path }}, port: http{{ if .top.Values.tls.secret }}, scheme: HTTPS{{ end }}}
{{- end }}

{{/* The server's pod, as deploy/kubernetes has it. */}}
{{- define "scrimp.pod" -}}
metadata:
  labels:
    {{- include "scrimp.select" . | nindent 4 }}
  annotations:
    checksum/engines: {{ include "scrimp.engines" . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "scrimp.name" . }}
  automountServiceAccountToken: true # of the cluster's API: the engine's credentials
  enableServiceLinks: false
  terminationGracePeriodSeconds: 30 # the server ends within seconds
  {{- range .Values.imagePullSecrets }}
  {{- if eq . (first $.Values.imagePullSecrets) }}
  imagePullSecrets:
  {{- end }}
    - name: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if eq .Values.storage.kind "postgres" }}
  topologySpreadConstraints:
    {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "scrimp.select" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: scrimp
      image: {{ include "scrimp.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [/usr/bin/scrimp, serve]
      args:
        - --listen=:7077
        {{- if .Values.tls.secret }}
        - --tls-cert=/etc/scrimp/tls/tls.crt
        {{- else }}
        - --insecure
        {{- end }}
        - --log-json
        - --engines=/etc/scrimp/engines/engines.yaml
        {{- if .Values.adminToken.secret }}
        - --admin-token=/etc/scrimp/admin/token
        {{- end }}
        {{- if .Values.tls.secret }}
        - --tls-key=/etc/scrimp/tls/tls.key
        {{- end }}
        {{- range .Values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        - {name: SCRIMP_DATA, value: /data/scrimp} # a folder of the server's own: the volume's is the kubelet's
        {{- if eq .Values.storage.kind "postgres" }}
        - name: SCRIMP_DB
          valueFrom:
            secretKeyRef: {name: {{ .Values.storage.postgres.secret }}, key: {{ .Values.storage.postgres.key }}}
        {{- end }}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - {name: http, containerPort: 7077, protocol: TCP}
      startupProbe:
        {{- include "scrimp.probe" (dict "top" . "path" "/healthz") | nindent 8 }}
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        {{- include "scrimp.probe" (dict "top" . "path" "/healthz") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- include "scrimp.probe" (dict "top" . "path" "/readyz") | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: 6
        failureThreshold: 2
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        - {name: engines, mountPath: /etc/scrimp/engines, readOnly: true}
        {{- if .Values.adminToken.secret }}
        - {name: admin, mountPath: /etc/scrimp/admin, readOnly: true}
        {{- end }}
        {{- if .Values.tls.secret }}
        - {name: tls, mountPath: /etc/scrimp/tls, readOnly: true}
        {{- end }}
  volumes:
    {{- if or (eq .Values.storage.kind "postgres") .Values.storage.existingClaim }}
    - name: data
      persistentVolumeClaim: {claimName: {{ include "scrimp.claim" . }}}
    {{- end }}
    - name: tmp
      emptyDir: {}
    - name: engines
      configMap: {name: {{ include "scrimp.name" . }}-engines}
    {{- with .Values.adminToken.secret }}
    - name: admin
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
    {{- with .Values.tls.secret }}
    - name: tls
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
{{- end }}
