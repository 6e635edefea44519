; The lock of mutex_cmpxchg.asm without the `lock` prefix (conchon-2017, section 5): loading,
; comparing and storing are no longer one step.
; expect: sc violated
; expect: tso violated

begin shared_data
    Lock dd 0
end shared_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
acquire: mov eax, 0
         mov ebx, 1
         cmpxchg dword [Lock], ebx
         jne acquire
cs:      nop
         mov dword [Lock], 0
         jmp acquire
end thread_code
