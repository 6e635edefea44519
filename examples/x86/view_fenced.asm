; A thread that is past its fence has published its flag: nobody sees the old value any more.
; `$u:x[$t]` is what thread u would load from x[$t]: its own newest pending store, else memory.
; expect: sc holds, tso holds, pso holds
begin shared_data
    any dd 0
end shared_data

begin thread_data
    flag dd 0
end thread_data

begin unsafe_prop
    eip[$t] = past && $u:flag[$t] = 0 || eip[$t] = past && $u:any = 0
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
    mov dword [flag], 1
    mov dword [any], 1
    mfence
past:
    nop
end thread_code
